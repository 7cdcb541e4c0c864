// Turns stamps of TickClock into CLOCK_MONOTONIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace proton {

/// What host threads do is stamped with TickClock, which costs them a third of what CLOCK_MONOTONIC
/// does. Both clocks are read now and then; a stamp from between two readings gets an offset
/// between theirs, and one after the newest goes on as the clocks did before it. So the counter's
/// drift does not add up, and what happened later gets a later time, whenever it is asked for.
class TickAnchors {
public:
  /// Reads both clocks, if the last reading is old. Before records are consumed.
  void observe() noexcept;
  int64_t monotonic(int64_t tick_ns) const noexcept;

private:
  struct Anchor {
    int64_t tick_ns = 0;
    int64_t offset_ns = 0; ///< CLOCK_MONOTONIC less TickClock
  };
  static constexpr int64_t kBetweenNs = 50'000'000;
  static constexpr size_t kMost = 4096;
  static double drift(const Anchor &from, const Anchor &to) noexcept;
  static int64_t at(const Anchor &from, double drift, int64_t tick_ns) noexcept;

  std::vector<Anchor> anchors_; ///< in order of time
  bool reads_counter_ = false;  ///< what TickClock did for them
};

} // namespace proton
