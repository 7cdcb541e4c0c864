// The GPUs of the doubles' machine, and which of them a process may use.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace fake {

inline constexpr uint32_t kFirstGpuNode = 2; ///< of the driver; the CPUs are 0 and 1
inline constexpr const char *kArch = "gfx942";
inline constexpr const char *kProduct = "AMD Instinct MI300X";

struct Gpu {
  uint32_t index = 0; ///< among the GPUs of the machine
  uint32_t node() const { return kFirstGpuNode + index; }
  uint64_t uuid() const { return 0x7a1c0000d0000000 + 0x1111 * (index + 1); }
  uint32_t domain() const { return 0; }
  uint32_t location() const { return (0x05 + 0x10 * index) << 8; } ///< PCI bus, device 0
  std::string uuid_digits() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(uuid()));
    return text;
  }
};

inline std::vector<Gpu> machine() {
  const char *text = std::getenv("FAKE_AMD_GPUS");
  const uint32_t count = text == nullptr ? 2 : static_cast<uint32_t>(std::atoi(text));
  std::vector<Gpu> gpus;
  for (uint32_t i = 0; i < count; ++i)
    gpus.push_back({i});
  return gpus;
}

/// The GPUs that a variable leaves of `gpus`, in its order; an unknown one ends the list.
inline std::vector<Gpu> chosen_by(const char *variable, const std::vector<Gpu> &gpus) {
  const char *environment = std::getenv(variable);
  if (environment == nullptr)
    return gpus;
  std::vector<Gpu> left;
  const std::string text = environment;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = text.find(',', begin);
    const size_t end = comma == std::string::npos ? text.size() : comma;
    const std::string token = text.substr(begin, end - begin);
    const size_t before = left.size();
    for (size_t i = 0; i < gpus.size(); ++i)
      if (token == std::to_string(i) || token == "GPU-" + gpus[i].uuid_digits())
        left.push_back(gpus[i]);
    if (left.size() == before)
      break;
    begin = end + 1;
  }
  return left;
}

inline std::vector<Gpu> gpus_of_rocr() { return chosen_by("ROCR_VISIBLE_DEVICES", machine()); }

inline std::vector<Gpu> gpus_of_hip() {
  const char *variable = std::getenv("HIP_VISIBLE_DEVICES") != nullptr ? "HIP_VISIBLE_DEVICES"
                                                                       : "CUDA_VISIBLE_DEVICES";
  return chosen_by(variable, gpus_of_rocr());
}

} // namespace fake
