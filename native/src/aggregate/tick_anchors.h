// Turns the times at which launches were called into CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

namespace proton {

/// A launch is stamped with TickClock, which costs the launching thread a third of what
/// CLOCK_MONOTONIC does. Both clocks are read at every drain; a stamp from between two drains gets
/// an offset between theirs, so the counter's drift does not add up.
class TickAnchors {
public:
  /// Reads both clocks. Before launches are consumed.
  void observe() noexcept;
  int64_t monotonic(int64_t tick_ns) const noexcept;

private:
  struct Anchor {
    int64_t tick_ns = 0;
    int64_t offset_ns = 0; ///< CLOCK_MONOTONIC less TickClock
  };
  Anchor older_, newer_;
  double drift_ = 0; ///< of the offset, per nanosecond from `older_` to `newer_`
};

} // namespace proton
