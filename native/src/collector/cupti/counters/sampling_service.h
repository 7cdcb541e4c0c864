// The process that samples counters: what it and the recorded program say to each other, and its
// loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace proton {

// Both sides are the same build on one machine, so numbers go as they are.

inline constexpr uint64_t kMostTextBytes = 1 << 20; ///< that one side sends the other
inline constexpr uint64_t kMostSamples = 100'000;   ///< of a burst

/// Followed by the text: the file of libcupti, the UUID of the device, and the sets of metrics, the
/// richest first. Each of these strings has a zero behind it, and each set an empty string.
struct SamplingRequest {
  uint64_t text_bytes = 0;
  uint64_t hardware_bytes = 0; ///< of the device's buffer
  uint32_t interval_ns = 0;
  uint32_t burst_ms = 0;
  uint32_t is_opening = 0; ///< no burst: only switch counters on
};

/// Followed by the text: the error, or the metrics that are counted, each with a zero behind it.
/// Then, for each sample, its begin and its end (int64_t, CLOCK_MONOTONIC), all begins first, and
/// a row of metrics (double).
struct SamplingAnswer {
  int64_t process_ns = 0; ///< processor time so far
  int64_t open_ns = 0;    ///< what it took: this and the following
  int64_t decode_ns = 0;
  int64_t info_ns = 0;
  int64_t evaluate_ns = 0;
  uint64_t text_bytes = 0;
  uint64_t samples = 0;
  uint64_t lost = 0; ///< samples without times or values
  uint8_t has_failed = 0;
  uint8_t is_image_full = 0;
  uint8_t is_buffer_full = 0;
};

/// The strings of a text, each with a zero behind it.
std::vector<std::string> split_words(const std::string &text);

/// Answers requests that come from `socket` until the other side writes no more. A burst that is
/// taken then ends early, and is answered. Once the other side has closed, the process ends at
/// once, whatever it does.
void serve_counter_samples(int socket);

} // namespace proton
