// What a profile says about its samples of hardware counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace proton {

/// Since the last start.
struct CounterFacts {
  std::vector<std::string> metrics; ///< of the set that was taken; empty: none yet
  uint32_t interval_ns = 0;
  uint32_t burst_ms = 0;
  std::vector<int32_t> devices; ///< that are sampled
  uint64_t refused_devices = 0; ///< that cannot be
  std::string error;            ///< why the first of them cannot be; or why bursts were lost
  uint64_t bursts = 0;          ///< with samples
  uint64_t samples = 0;
  int64_t covered_ns = 0;    ///< time inside samples, over all devices
  uint64_t lost_bursts = 0;  ///< that failed
  uint64_t lost_samples = 0; ///< that came without times or values
  uint64_t full_images = 0;  ///< bursts that were longer than what is decoded of one
  uint64_t full_buffers = 0; ///< bursts of which only the newest samples were kept
  int64_t pause_ns = 0;      ///< between bursts; it doubles when sessions drop bursts
  int64_t thread_ns = 0;     ///< processor time of the program's thread for it
  // In the process that samples.
  int64_t process_ns = 0; ///< processor time
  int64_t open_ns = 0;    ///< time of switching counters on, over all devices
  int64_t decode_ns = 0;  ///< time of cuptiPmSamplingDecodeData
  int64_t info_ns = 0;    ///< time of reading the times of samples
  int64_t evaluate_ns = 0;
};

} // namespace proton
