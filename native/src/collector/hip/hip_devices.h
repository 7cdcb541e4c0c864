// HIP as a source of facts of devices.
#pragma once

#include <string>
#include <vector>

#include "collector/gpu/devices/device_facts.h"
#include "driver/hip/hip_driver.h"

namespace proton {

// Which HIP ordinal a GPU has under the variables that hide and reorder GPUs.

struct GpuIdentity {
  std::string uuid; ///< "GPU-" and 16 hexadecimal digits; "" where it has none
  std::string pci;  ///< "0000:c1:00.0"
};

/// Values as they are set; "" is unset, as ROCm has it.
struct VisibleVariables {
  std::string rocr; ///< ROCR_VISIBLE_DEVICES
  std::string hip;  ///< HIP_VISIBLE_DEVICES, or CUDA_VISIBLE_DEVICES where that is unset
  static VisibleVariables of_environment();
};

/// HIP ordinal of each GPU of the machine, in their order; -1: it is hidden. Each variable takes
/// indices into what the one before it left, and UUIDs; a word that names no GPU ends its list.
std::vector<int> ordinals_by_variables(const std::vector<GpuIdentity> &gpus,
                                       const VisibleVariables &variables);
/// Same from what HIP says of its own devices, by ordinal; empty where that does not
/// distinguish GPUs.
std::vector<int> ordinals_by_identity(const std::vector<GpuIdentity> &gpus,
                                      const std::vector<GpuIdentity> &devices);

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
