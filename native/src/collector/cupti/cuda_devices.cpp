#include "collector/cupti/cuda_devices.h"

namespace proton {

DeviceDescription CudaDevices::describe(int32_t device) const {
  CudaDeviceFacts facts = driver_.device(device);
  DeviceDescription described;
  described.name = facts.name;
  described.uuid = facts.uuid;
  Device &known = described.device;
  known.kind = "CUDA";
  known.index = device;
  known.arch = facts.capability == 0 ? "" : std::to_string(facts.capability);
  known.num_sms = facts.multiprocessors;
  known.clock_rate_khz = facts.clock_rate_khz;
  known.memory_clock_rate_khz = facts.memory_clock_rate_khz;
  known.bus_width_bits = facts.bus_width_bits;
  return described;
}

} // namespace proton
