// NVIDIA's driver as the source of facts about devices.
#pragma once

#include "collector/gpu/devices/device_facts.h"
#include "driver/cuda/cuda_driver.h"

namespace proton {

class CudaDevices : public DeviceSource {
public:
  explicit CudaDevices(const CudaDriver &driver) : driver_(driver) {}
  DeviceDescription describe(int32_t device) const override;

private:
  const CudaDriver &driver_;
};

} // namespace proton
