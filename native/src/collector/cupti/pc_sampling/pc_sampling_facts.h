// What a profile says about its samples of program counters.
#pragma once

#include <cstdint>
#include <string>

namespace proton {

/// Since the last start. `samples` + `own` came with a PC: each is on a node of every session that
/// was active, or belongs to a kernel that ran while none was.
struct PcSamplingFacts {
  uint64_t period_cycles = 0; ///< the longest of the contexts; 0 if none is sampled
  bool is_automatic = false;
  std::string attribution;        ///< how samples were given call paths
  uint64_t samples = 0;           ///< of the target, of stalled and of selected warps
  uint64_t not_issued = 0;        ///< counted beside them: nothing was issued at that moment
  uint64_t dropped = 0;           ///< by the hardware
  uint64_t of_driver_kernels = 0; ///< these come without a PC
  uint64_t own = 0;               ///< of the profiler's kernels, shown nowhere
  uint64_t total = 0;             ///< as CUPTI counts
  uint64_t doubled = 0;           ///< how often the period doubled, because a buffer was full
  uint64_t without_line = 0;      ///< part of `samples`
  uint64_t contexts = 0;          ///< that were sampled
  uint64_t refused_contexts = 0;  ///< that could not be
  std::string error;              ///< why the first of them could not; or why samples were lost
  uint64_t cubins = 0;            ///< that are kept for their lines
  uint64_t cubin_bytes = 0;
  uint64_t most_bytes = 0; ///< the most that was held at once, without cubins
  int64_t drain_ns = 0;    ///< processor time of taking samples over from CUPTI
  int64_t publish_ns = 0;  ///< processor time of finding lines and call paths
};

} // namespace proton
