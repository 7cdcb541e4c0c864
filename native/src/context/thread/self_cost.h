// What recording costs the target, measured on this machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace proton {

/// What a call of the target into the profiler is for.
enum class CallKind : uint8_t {
  kOther,
  kOperator, ///< one of torch begins
  kNode,     ///< of a backward graph: it begins
};
inline constexpr size_t kCallKinds = 3;

/// Counts a call and takes the time of one in 61, where it happens: in a loop of our own the caches
/// would be warm. Does not nest. [any thread, noexcept]
class TimedCall {
public:
  explicit TimedCall(CallKind kind = CallKind::kOther) noexcept {
    ++t_calls.seen[static_cast<size_t>(kind)];
    if (--t_calls.until_timed == 0) [[unlikely]]
      begin();
  }
  ~TimedCall() {
    if (start_ns_ != 0) [[unlikely]]
      end();
  }
  TimedCall(const TimedCall &) = delete;
  TimedCall &operator=(const TimedCall &) = delete;

private:
  friend struct SelfCost;
  static constexpr uint32_t kEvery = 61; ///< prime: loops of the target have other lengths
  struct Calls {
    uint32_t until_timed = kEvery;
    uint32_t seen[kCallKinds] = {}; ///< not yet among those of the process
  };
  // Initial-exec: one instruction instead of a call per access.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Calls t_calls;

  void begin() noexcept;
  void end() const noexcept;
  static void hand_over() noexcept;

  int64_t start_ns_ = 0; ///< of TickClock; 0: not timed
};

/// What the profiler did on threads of the target.
struct SelfCost {
  uint64_t operators = 0; ///< of torch that were observed, recorded or not, with ranges
  uint64_t nodes = 0;     ///< of backward graphs that were observed
  uint64_t timed = 0;     ///< calls whose time was taken
  int64_t timed_ns = 0;   ///< the sum of these times
  int64_t reading_ns = 0; ///< for which frames were read, and nothing else ran Python

  /// Since the process began. Of other threads the latest 60 calls may be missing. [any thread]
  static SelfCost now() noexcept;
  SelfCost since(const SelfCost &before) const noexcept;
  /// Estimated nanoseconds of all calls and of reading frames.
  int64_t spent_ns() const noexcept;
};
/// Adds processor time of reading frames. [any thread]
void add_reading_ns(int64_t took_ns) noexcept;

/// Mean nanoseconds of one timed scope: two clock reads, push, pop and one record. Takes about
/// 50 us; touches no session.
double event_cost_ns();

} // namespace proton
