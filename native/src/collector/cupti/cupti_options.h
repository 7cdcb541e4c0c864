// What the cupti backend is asked to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/shared_library.h"

namespace proton {

enum class PcSamplingMode : uint8_t {
  kOff,
  kContinuous, ///< all the time; samples belong to a kernel, its call paths are estimated
  kScope,      ///< while an outermost scope is open: waits for the devices at its borders
  kLaunch,     ///< launch by launch: waits for the device before and behind each
};

struct PcSamplingOptions {
  PcSamplingMode mode = PcSamplingMode::kOff;
  uint32_t period_log2 = 0;                  ///< cycles between samples, 5 to 31; 0: automatic
  uint32_t drain_ms = 50;                    ///< between two looks at what came
  size_t hardware_bytes = size_t{128} << 20; ///< of a device's buffer, in its memory
};

/// How hardware counters are sampled: in bursts, from time to time.
struct CounterOptions {
  /// Sets of metrics by NVIDIA's names, the richest first: a GPU takes the first that it has and
  /// that fits one pass. None: no counters.
  std::vector<std::vector<std::string>> sets;
  uint32_t interval_ns = 10'000; ///< between two samples of a burst
  uint32_t burst_ms = 10;
  uint32_t pause_ms = 250; ///< between bursts, over all devices; more where they cost more
  size_t hardware_bytes = size_t{128} << 20; ///< of a device's buffer
  uint32_t answer_ms = 60'000; ///< for an answer, with the lowest priority on a busy machine
};

struct CuptiOptions {
  std::vector<LibraryCandidate> candidates; ///< where libcupti may be, in order
  /// Of one activity buffer. 64 MB buffers lengthen the measured kernels by 7 %, 1 to 8 MB ones do
  /// not; the smallest keeps the launches that wait for records in the processor's caches.
  size_t buffer_bytes = size_t{1} << 20;
  uint32_t flush_period_ms = 100; ///< full buffers come at least this often; 0: CUPTI decides
  bool copies = false;            ///< also record copies and sets of memory
  bool whole_graphs = false;      ///< one record per launch of a graph, not one per node
  bool nvtx = false;              ///< NVTX ranges of the target are scopes
  bool vendor_clock = false;      ///< convert CUPTI's own time instead of giving it ours
  bool hardware_trace = false;    ///< new GPUs take the times of kernels themselves
  bool finalizes = false;         ///< detach CUPTI from the process at the end
  PcSamplingOptions pc_sampling;
  CounterOptions counters;
};

} // namespace proton
