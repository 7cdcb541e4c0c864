// What the backends of AMD GPUs are asked to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collector/gpu/devices/device_facts.h"
#include "driver/shared_library.h"

namespace proton {

struct HipOptions {
  std::vector<LibraryCandidate> candidates;       ///< where the profiler's library may be, in order
  std::vector<LibraryCandidate> hip_candidates;   ///< libamdhip64
  std::vector<LibraryCandidate> hsa_candidates;   ///< libhsa-runtime64, for roctracer alone
  std::vector<LibraryCandidate> roctx_candidates; ///< libroctx64; none: it is not asked for ranges
  size_t buffer_bytes = size_t{1} << 20;
  uint32_t flush_period_ms = 100; ///< records come at least this often; 0: as the library likes
  bool copies = false;            ///< also record copies and sets of memory
  bool roctx = false;             ///< ROCTX ranges of the target are scopes
};

// What a profile of AMD GPUs says about where its records came from.

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
