// Samples of hardware counters, and the kernels of one session that ran beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "calltree/call_path_tree.h"
#include "record/record.h"

namespace proton {

/// The samples of a burst beside which kernels of one phase ran, with all kernels that overlapped
/// them.
struct JoinedBurst {
  std::shared_ptr<const CounterBurst> burst;
  size_t first_sample = 0;
  size_t end_sample = 0;  ///< one past the last
  int32_t device = kNone; ///< index into the DeviceTable
  std::vector<NodeIndex> nodes;
  std::vector<uint8_t> is_own; ///< 0: the kernel and its node are of another phase
  std::vector<int64_t> kernel_start_ns;
  std::vector<int64_t> kernel_end_ns;
};

/// The bursts that a session keeps. Its memory is bounded: when there are too many bursts, or
/// kernels beside them, every second burst is dropped, so that the others stay spread over the run.
/// Phases are taken one by one, so a burst in which one ended and the next began stays until
/// neither has more kernels to come. Not synchronised: the aggregator's lock guards it.
class CounterLog {
public:
  static constexpr size_t kMostBursts = 512;
  static constexpr size_t kMostKernels = size_t{1} << 21; ///< 48 MB

  explicit CounterLog(size_t most_bursts = kMostBursts, size_t most_kernels = kMostKernels)
      : most_bursts_(most_bursts), most_kernels_(most_kernels) {}

  /// Kernels of the device that end after `at_ns` are kept from now on.
  void begin(int32_t device, int64_t at_ns);
  /// Ends the device's burst. Without samples it is forgotten, and so are its kernels.
  ///   phase: the present one; kernels of later ones began after the burst.
  /// True: every second burst was dropped.
  bool end(int32_t device, std::shared_ptr<const CounterBurst> burst, uint32_t phase);
  /// A kernel ran. Records may come late, long after the burst's end.
  void add(uint32_t phase, NodeIndex node, int32_t device, int64_t start_ns, int64_t end_ns);
  /// The kernels of a phase that were not taken belong to none.
  void forget_phase(uint32_t phase);
  /// All kernels of phases before this one were taken: forgets bursts that only they overlapped.
  void forget_before(uint32_t phase);

  /// What there is to take of a phase.
  enum class Rest : uint8_t {
    kNothing,
    kOpen, ///< some of its kernels ran in a burst that is not over
    kWhole,
  };
  Rest rest_of(uint32_t phase) const;
  /// The bursts that are over and that kernels of the phase overlapped; each is taken once.
  ///   is_part: other phases ran before or after. Their records may be yet to come, so samples
  ///     before the first and after the last kernel of the phase are left to them.
  std::vector<JoinedBurst> take(uint32_t phase, bool is_part);
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
    uint32_t last_phase = 0;                     ///< when it ended
    std::vector<uint32_t> phases;                ///< of kernels that were not taken
    std::vector<Kernel> kernels;
  };
  static constexpr uint32_t kNoPhase = std::numeric_limits<uint32_t>::max();

  bool is_full() const;
  void thin();
  static JoinedBurst join(const Burst &burst, uint32_t phase, bool is_part);

  size_t most_bursts_;
  size_t most_kernels_;
  std::vector<Burst> bursts_; ///< by their begin
  std::shared_ptr<const std::vector<std::string>> metrics_;
  uint64_t dropped_bursts_ = 0;
};

} // namespace proton
