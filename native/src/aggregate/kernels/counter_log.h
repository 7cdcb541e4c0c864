// Samples of hardware counters, and the kernels of one session that ran beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "calltree/call_path_tree.h"
#include "record/counter_burst.h"

namespace proton {

/// A burst with the kernels that overlapped its samples.
struct JoinedBurst {
  std::shared_ptr<const CounterBurst> burst;
  int32_t device = kNone; ///< index into the DeviceTable
  std::vector<NodeIndex> nodes;
  std::vector<int64_t> kernel_start_ns;
  std::vector<int64_t> kernel_end_ns;
};

/// The bursts that a session keeps. Its memory is bounded: when there are too many bursts, or
/// kernels beside them, every second burst is dropped, so that the others stay spread over the run.
/// Not synchronised: the aggregator's lock guards it.
class CounterLog {
public:
  static constexpr size_t kMostBursts = 512;
  static constexpr size_t kMostKernels = size_t{1} << 21; ///< 48 MB

  explicit CounterLog(size_t most_bursts = kMostBursts, size_t most_kernels = kMostKernels)
      : most_bursts_(most_bursts), most_kernels_(most_kernels) {}

  /// Kernels of the device that end after `at_ns` are kept from now on.
  void begin(int32_t device, int64_t at_ns);
  /// Ends the device's burst. Without samples it is forgotten, and so are its kernels. True: every
  /// second burst was dropped.
  bool end(int32_t device, std::shared_ptr<const CounterBurst> burst);
  /// A kernel ran. Records may come late, long after the burst's end.
  void add(uint32_t phase, NodeIndex node, int32_t device, int64_t start_ns, int64_t end_ns);
  /// Forgets the kernels of a phase.
  void forget_phase(uint32_t phase);

  /// The bursts that are over and that kernels of the phase overlapped, with these. Both are
  /// forgotten, so call it when no more records come.
  std::vector<JoinedBurst> take(uint32_t phase);
  /// What the values of all bursts are, by the vendor's names; empty before the first burst.
  std::vector<std::string> metrics() const;
  /// Bursts that were dropped to bound the memory.
  uint64_t dropped_bursts() const { return dropped_bursts_; }

private:
  static constexpr int64_t kOpen = std::numeric_limits<int64_t>::max();
  struct Kernel {
    NodeIndex node;
    uint32_t phase;
    int64_t start_ns;
    int64_t end_ns;
  };
  struct Burst {
    int32_t device = kNone;
    int64_t start_ns = 0;
    int64_t end_ns = kOpen;
    std::shared_ptr<const CounterBurst> samples; ///< null while it is open
    std::vector<Kernel> kernels;
  };

  bool is_full() const;
  void thin();

  size_t most_bursts_;
  size_t most_kernels_;
  std::vector<Burst> bursts_; ///< by their begin
  std::shared_ptr<const std::vector<std::string>> metrics_;
  uint64_t dropped_bursts_ = 0;
};

} // namespace proton
