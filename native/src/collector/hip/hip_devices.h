// HIP as a source of facts of devices.
#pragma once

#include <vector>

#include "collector/gpu/devices/device_facts.h"
#include "collector/hip/visible_gpus.h"
#include "driver/hip/hip_driver.h"

namespace proton {

class HipDevices : public DeviceSource {
public:
  explicit HipDevices(const HipDriver &driver) : driver_(driver) {}
  DeviceDescription describe(int32_t device) const override;
  /// The devices of this process, by ordinal; empty where HIP has none.
  std::vector<GpuIdentity> identities() const;

private:
  const HipDriver &driver_;
};

} // namespace proton
