// Samples of program counters of a kernel, by line of its source and by what its warps waited for.
#pragma once

#include <cstdint>
#include <span>

#include "record/record.h"

namespace proton {

/// Reasons that every sampled node has a metric of: upstream's, by its names. `selected` is not
/// a stall: these warps issued.
inline constexpr const char *kStallMetrics[] = {"stalled_branch_resolving",
                                                "stalled_no_instruction",
                                                "stalled_short_scoreboard",
                                                "stalled_wait",
                                                "stalled_long_scoreboard",
                                                "stalled_tex_throttle",
                                                "stalled_barrier",
                                                "stalled_membar",
                                                "stalled_imc_miss",
                                                "stalled_mio_throttle",
                                                "stalled_math_pipe_throttle",
                                                "stalled_drain",
                                                "stalled_lg_throttle",
                                                "stalled_not_selected",
                                                "stalled_misc",
                                                "stalled_dispatch_stall",
                                                "stalled_sleeping",
                                                "stalled_selected"};

/// Samples with one reason. Both texts live as long as the process.
struct StallCount {
  const char *metric = nullptr;            ///< e.g. "stalled_wait"
  const char *not_issued_metric = nullptr; ///< e.g. "not_issued_wait"
  uint64_t samples = 0;
  uint64_t not_issued = 0; ///< of these, at moments when nothing was issued
};

struct PcLine {
  const char *place = nullptr; ///< "folder/file:line@function"; null: no line is known
  std::span<const StallCount> stalls;
};

/// Pointers are valid only while the record is handed over.
struct PcSampleRecord {
  const char *kernel = nullptr;   ///< as it is shown
  const char *raw_name = nullptr; ///< as the device's tools know it
  std::span<const PcLine> lines;
  Capture at; ///< where it was launched; epoch 0: that is not known
};

} // namespace proton
