// Options that name the doubles of AMD's libraries.
#pragma once

#include <cstdlib>

#include "collector/hip/hip_options.h"

namespace proton {

inline std::vector<LibraryCandidate> double_of(const char *variable) {
  return {{std::getenv(variable), "test", false}};
}

/// `profiler`: the variable that names the profiler's library.
inline HipOptions amd_options(const char *profiler) {
  HipOptions options;
  options.candidates = double_of(profiler);
  options.hip_candidates = double_of("PROTON_BENCH_HIP_LIB");
  options.hsa_candidates = double_of("PROTON_BENCH_HSA_LIB");
  options.roctx_candidates = double_of("PROTON_BENCH_ROCTX_LIB");
  options.flush_period_ms = 0;
  return options;
}

} // namespace proton
