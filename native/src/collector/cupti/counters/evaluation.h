// Evaluating samples in a process of its own: what both sides say to each other, and its loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/cupti/cupti_profiler_host.h"

namespace proton {

/// One row of metrics for each of these samples of an image; NaNs where it cannot be evaluated.
std::vector<double> evaluate_samples(CuptiProfilerHost &host, const uint8_t *image, size_t bytes,
                                     const std::vector<uint64_t> &samples);

// Both sides are the same build on one machine, so numbers go as they are.

/// Followed by the text, and by the indices of the samples (uint64_t). The text has the file of
/// libcupti, the chip and the metrics, each with a zero behind it.
struct EvaluationRequest {
  uint64_t text_bytes = 0;
  uint64_t image_offset = 0; ///< of the counter data image in the shared memory
  uint64_t image_bytes = 0;
  uint64_t samples = 0;
};

/// Followed by the error as text, or by one row of metrics for each sample (double). A sample that
/// cannot be evaluated has NaNs.
struct EvaluationAnswer {
  int64_t used_ns = 0; ///< processor time of the process so far
  uint64_t error_bytes = 0;
  uint64_t values = 0;
};

/// Answers requests that come from `socket` about images in the file `memory`, until its other end
/// is closed. [the process that evaluates]
void serve_evaluations(int socket, int memory);

} // namespace proton
