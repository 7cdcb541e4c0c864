#include "collector/hip/hip_devices.h"

namespace proton {

DeviceDescription HipDevices::describe(int32_t device) const {
  DeviceDescription described;
  Device &known = described.device;
  known.kind = "HIP";
  known.index = device;
  if (device < 0)
    return described; // a GPU that HIP does not show to this process
  HipDeviceFacts facts = driver_.device(device);
  described.name = facts.name;
  described.uuid = facts.uuid;
  known.arch = facts.arch;
  known.num_sms = facts.compute_units;
  known.clock_rate_khz = facts.clock_rate_khz;
  known.memory_clock_rate_khz = facts.memory_clock_rate_khz;
  known.bus_width_bits = facts.bus_width_bits;
  return described;
}

std::vector<GpuIdentity> HipDevices::identities() const {
  int count = 0;
  std::vector<GpuIdentity> found;
  if (driver_.functions().get_device_count(&count) != hip::kSuccess)
    return found;
  for (int device = 0; device < count; ++device) {
    HipDeviceFacts facts = driver_.device(device);
    found.push_back({facts.uuid, facts.pci});
  }
  return found;
}

} // namespace proton
