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
  bool shared = false;            ///< other clients of CUPTI's second interface may come later
  PcSamplingOptions pc_sampling;
  CounterOptions counters;
};

// What a profile says about its samples of program counters.

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

// What a profile says about its samples of hardware counters.

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
