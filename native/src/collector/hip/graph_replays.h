// Launches of graphs under way: which node each dispatch is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "collector/gpu/work/graph_table.h"

namespace proton {

/// What an executable graph dispatches.
struct GraphPlan {
  std::vector<NodeKey> kernels; ///< in the order of their capture
  bool is_exact = true;         ///< it dispatches nothing else
  /// Position in `kernels` by the ordinal of the dispatch, as the first launch showed that was
  /// recorded in one piece: a graph is scheduled once. GraphReplays' mutex guards it.
  std::vector<uint32_t> order;
};

/// One dispatch of a launch.
struct Dispatch {
  uint64_t key = 0;     ///< kernel_key of its record
  uint64_t ordinal = 0; ///< counted from 0 where the library counts, or any ascending number
  bool is_counted = false;
  uint64_t node = 0;     ///< what `match` found
  bool has_shape = true; ///< else the key has no more than the name
};

/// A record names its launch, kernel and shape. It is the first node of these, in the order of
/// dispatch, that has not run yet in this launch.
class GraphReplays {
public:
  /// Node of a dispatch that is not a known one.
  static constexpr uint64_t kUnknownNode = uint64_t{1} << 63;

  /// A launch on a stream began. No plan: nothing is known of the graph. [launching thread] locks
  void begin(uint64_t launch, std::shared_ptr<GraphPlan> plan, uint32_t stream);
  /// It came to nothing, or its records are all here.
  void end(uint64_t launch) noexcept;
  void end_up_to(uint64_t newest_launch) noexcept;
  /// Whether some launch is under way. [any thread, no lock]
  bool has_any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
  bool has(uint64_t launch) noexcept;
  /// Finds the nodes of dispatches of one launch, which ascend, and returns its stream; 0 where it
  /// is not known. [completing thread] locks
  uint32_t match(uint64_t launch, std::vector<Dispatch> &dispatches);

private:
  struct Replay {
    std::shared_ptr<GraphPlan> plan;
    std::vector<bool> has_run; ///< by position in the plan
    uint32_t stream = 0;
    size_t left = 0;
    size_t lowest = 0; ///< first position that has not run
    uint64_t unknown = 0;
  };
  static constexpr size_t kManyReplays = 4096;
  static constexpr size_t kMostReplays = 65536; // more than HIP's queues hold
  void make_room();
  static size_t find(const Replay &replay, const Dispatch &dispatch);
  static void learn(Replay &replay, const std::vector<Dispatch> &dispatches,
                    const std::vector<size_t> &found);

  std::mutex mutex_;
  std::unordered_map<uint64_t, Replay> replays_;
  size_t make_room_at_ = kManyReplays; ///< so many are looked through next
  std::atomic<size_t> count_{0};
};

} // namespace proton
