#include "aggregate/times/tick_anchors.h"

#include <algorithm>
#include <cstdlib>

#include "support/clock.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

constexpr int kTries = 4;
constexpr int64_t kCloseNs = 500;      // nothing ran between the readings
constexpr int64_t kJumpNs = 1'000'000; // one of the clocks stood still meanwhile
constexpr int64_t kDriftShare = 1000;  // more than the thousandth part is not a drift

} // namespace

double TickAnchors::drift(const Anchor &from, const Anchor &to) noexcept {
  return static_cast<double>(to.offset_ns - from.offset_ns) /
         static_cast<double>(to.tick_ns - from.tick_ns);
}

int64_t TickAnchors::at(const Anchor &from, double drift, int64_t tick_ns) noexcept {
  auto since_ns = static_cast<double>(tick_ns - from.tick_ns);
  return tick_ns + from.offset_ns + static_cast<int64_t>(since_ns * drift);
}

void TickAnchors::observe() noexcept {
  if (reads_counter_ != TickClock::reads_counter()) {
    anchors_.clear();
    reads_counter_ = !reads_counter_;
  }
  int64_t since_ns = anchors_.empty() ? 0 : TickClock::now_ns() - anchors_.back().tick_ns;
  if (!anchors_.empty() && since_ns >= 0 && since_ns < kBetweenNs)
    return;
  Anchor best;
  int64_t least_ns = INT64_MAX;
  for (int i = 0; i < kTries && least_ns > kCloseNs; ++i) {
    int64_t before_ns = TickClock::now_ns();
    int64_t now_ns = monotonic_ns();
    int64_t took_ns = TickClock::now_ns() - before_ns;
    if (took_ns >= least_ns)
      continue;
    least_ns = took_ns;
    best.tick_ns = before_ns + took_ns / 2;
    best.offset_ns = now_ns - best.tick_ns;
  }
  if (!anchors_.empty()) {
    int64_t span_ns = best.tick_ns - anchors_.back().tick_ns;
    int64_t drift_ns = std::abs(best.offset_ns - anchors_.back().offset_ns);
    if (span_ns <= 0 || drift_ns > kJumpNs + span_ns / kDriftShare)
      anchors_.clear();
  }
  if (anchors_.size() == kMost) { // of the older half, every second serves
    for (size_t i = 1; i < kMost / 4; ++i)
      anchors_[i] = anchors_[2 * i];
    anchors_.erase(anchors_.begin() + kMost / 4, anchors_.begin() + kMost / 2);
  }
  try {
    anchors_.push_back(best);
  } catch (...) { // no memory: the older ones serve on
  }
}

int64_t TickAnchors::monotonic(int64_t tick_ns) const noexcept {
  if (anchors_.empty())
    return tick_ns;
  auto after =
      std::upper_bound(anchors_.begin(), anchors_.end(), tick_ns,
                       [](int64_t tick, const Anchor &each) { return tick < each.tick_ns; });
  if (after == anchors_.begin() || anchors_.size() == 1)
    return at(anchors_.front(), 0, tick_ns);
  if (after == anchors_.end()) // the clocks go on as they did
    return at(anchors_.back(), drift(anchors_.end()[-2], anchors_.back()), tick_ns);
  const Anchor &before = *std::prev(after);
  return at(before, drift(before, *after), tick_ns);
}

} // namespace proton
