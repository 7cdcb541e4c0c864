// Nested operators and kernels of one thread: how long each ran by itself, where a collector asks,
// and frames for those inside of which something is launched, where a session asks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "context/layer/layer_range.h"
#include "context/thread/host_range.h"
#include "record/record.h"

namespace proton {

/// What an operator is timed for.
enum class OpKind : uint8_t {
  kOperator, ///< counts towards the depth limit, but for autograd's own wrapper
  kBackward, ///< a node of the backward graph: does not count
  kUser,     ///< a range that the program named: does not count
};

/// Returns an operator's name; called only if the operator is recorded.
using NameOf = const char *(*)(const void *token);

/// True for autograd's own frame around a node of the backward graph.
bool is_autograd_evaluation(std::string_view name) noexcept;

/// Operators that stand in call paths where they are not timed: as deep as the collector's default.
inline constexpr uint32_t kDefaultOpDepth = 2;
/// Settings of the one CPU collector. Depth 0 is unlimited. [any thread]
void set_op_depth(uint32_t max_depth) noexcept;
void set_ops_enabled(bool enabled) noexcept;
/// Whether the arguments of operators are read: their tokens are libtorch's. [any thread]
void set_inputs_read(bool are_read) noexcept;
bool are_inputs_read() noexcept;
/// Called on the thread of an operator whose work is to be computed, with the number of its Work,
/// where the operator's frame is open. Null removes the listener. [any thread]
using WorkListener = void (*)(int32_t work) noexcept;
void set_work_listener(WorkListener listener) noexcept;

/// The node that a backward operator runs, where that is known.
struct NodeOfOp {
  int64_t number = kNoNumber;
  uint64_t thread = 0; ///< that made it; 0: unknown, and the node is of no layer
};
/// Begins an operator of the calling thread. Below the depth limit and on muted threads nothing is
/// recorded: the time stays with the operator that contains it. The token, not null, names the
/// operator until its end.
void begin_op(const void *token, OpKind kind, NameOf name_of, const NodeOfOp &node = {}) noexcept;
/// Ends the operator of that token and those that began after it. An operator that began on another
/// thread, or was ended with one around it, is counted, and forgotten where it began.
void end_op(const void *token) noexcept;

/// What a range that the program named takes with it: such a range may end on another thread.
struct UserRange {
  /// Shared with the stack of the thread where it began.
  struct Progress {
    std::atomic<int64_t> nested_ns{0}; ///< recorded ranges inside
    std::atomic<bool> is_done{false};  ///< recorded
  };
  std::vector<NamedFrame> path;
  uint32_t thread = kNoThread; ///< number of the one where it began
  int64_t start_ns = 0;
  std::shared_ptr<Progress> progress;
};
/// Begins one. Null if it is not recorded or, without memory, has to end where it began.
std::unique_ptr<UserRange> begin_user_op(const void *token, NameOf name_of) noexcept;
/// Ends it, on any thread; `range` is what its begin returned.
void end_user_op(const void *token, const UserRange *range) noexcept;
/// Operators that these functions counted since the last call. [any thread]
uint64_t take_stray_ops() noexcept;

/// Begins and ends an interpreted kernel; kernels of a thread nest.
void begin_kernel(std::string_view name, int32_t variant) noexcept;
void end_kernel() noexcept;

/// While muted, operators of this thread are not recorded. Nests.
void mute_ops() noexcept;
void unmute_ops() noexcept;

// Operators that ended on another thread than the one where they began, which reads them here.

/// A ring of the newest tokens. Takes no lock: it is used in callbacks, also of forked children.
class StrayEnds {
public:
  void post(const void *token) noexcept {
    uint64_t number = posted_.fetch_add(1, std::memory_order_acq_rel);
    Slot &slot = slots_[number % kSlots];
    slot.number.store(0, std::memory_order_release); // until the token is the new one
    slot.token.store(token, std::memory_order_release);
    slot.number.store(number + 1, std::memory_order_release);
  }

  /// True when something was posted since `seen`; one read, for the hot path.
  bool has_news(uint64_t seen) const noexcept {
    return posted_.load(std::memory_order_acquire) != seen;
  }

  /// Calls `visit(token)` for what was posted since `seen`, and advances `seen`. If more than a
  /// full ring was posted, only the newest are visited.
  template <typename Visit> void visit_since(uint64_t &seen, Visit &&visit) const noexcept {
    uint64_t end = posted_.load(std::memory_order_acquire);
    if (end - seen > kSlots)
      seen = end - kSlots;
    for (; seen < end; ++seen) {
      const Slot &slot = slots_[seen % kSlots];
      uint64_t number = slot.number.load(std::memory_order_acquire);
      if (number == 0 || number < seen + 1)
        return; // its thread is about to write it: next time
      const void *token = slot.token.load(std::memory_order_acquire);
      if (number == seen + 1 && slot.number.load(std::memory_order_acquire) == number)
        visit(token);
    }
  }

  /// For a thread that has nothing open yet.
  uint64_t posted() const noexcept { return posted_.load(std::memory_order_acquire); }

private:
  static constexpr uint64_t kSlots = 4096;
  struct Slot {
    std::atomic<uint64_t> number{0}; ///< position plus one; 0 while it is written
    std::atomic<const void *> token{nullptr};
  };
  std::atomic<uint64_t> posted_{0};
  std::array<Slot, kSlots> slots_{};
};

} // namespace proton
