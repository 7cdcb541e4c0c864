#include "aggregate/tick_anchors.h"

#include <algorithm>

#include "support/clock.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

constexpr int kTries = 4;
constexpr int64_t kCloseNs = 500;      // nobody came between the readings
constexpr int64_t kJumpNs = 1'000'000; // one of the clocks was set up or stood still meanwhile

} // namespace

void TickAnchors::observe() noexcept {
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
  older_ = newer_;
  newer_ = best;
  int64_t drift_ns = newer_.offset_ns - older_.offset_ns;
  int64_t span_ns = newer_.tick_ns - older_.tick_ns;
  if (span_ns <= 0 || drift_ns > kJumpNs || drift_ns < -kJumpNs)
    older_ = newer_;
  drift_ = older_.tick_ns == newer_.tick_ns
               ? 0
               : static_cast<double>(drift_ns) / static_cast<double>(span_ns);
}

int64_t TickAnchors::monotonic(int64_t tick_ns) const noexcept {
  int64_t since_ns = std::clamp(tick_ns, older_.tick_ns, newer_.tick_ns) - older_.tick_ns;
  auto drift_ns = static_cast<int64_t>(static_cast<double>(since_ns) * drift_);
  return tick_ns + older_.offset_ns + drift_ns;
}

} // namespace proton
