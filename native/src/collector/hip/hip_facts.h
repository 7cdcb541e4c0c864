// What a profile of AMD GPUs says about where its records came from.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "collector/gpu/devices/device_facts.h"

namespace proton {

struct HipFacts {
  std::string library;
  std::string origin; ///< why that library
  std::string version;
  std::string driver; ///< of HIP
  int64_t clock_drift_ns = 0;
  size_t buffer_bytes = 0;
  std::map<int32_t, DeviceFacts::Facts> devices;
};

} // namespace proton
