#include "aggregate/tick_anchors.h"

#include "check.h"
#include "support/clock.h"
#include "support/tick_clock.h"

using namespace proton;

namespace {

// Observes, takes a stamp between two readings of CLOCK_MONOTONIC, observes again and sees whether
// the stamp's time lies between both, or nearly so.
bool stamp_is_converted(TickAnchors &anchors) {
  constexpr int64_t kSlackNs = 100'000; // what may come between the readings of an observation
  anchors.observe();
  int64_t before_ns = monotonic_ns();
  int64_t tick_ns = TickClock::now_ns();
  int64_t after_ns = monotonic_ns();
  anchors.observe();
  int64_t found_ns = anchors.monotonic(tick_ns);
  return found_ns >= before_ns - kSlackNs && found_ns <= after_ns + kSlackNs;
}

} // namespace

TEST(a_stamp_becomes_the_time_at_which_it_was_taken) {
  TickAnchors anchors;
  CHECK(stamp_is_converted(anchors));
}

TEST(a_clock_that_is_set_up_between_two_observations_does_no_harm) {
  TickAnchors anchors;
  anchors.observe();
  TickClock::calibrate();
  CHECK(stamp_is_converted(anchors));
}

TEST(stamps_from_before_the_first_observation_get_its_offset) {
  TickClock::calibrate();
  TickAnchors anchors;
  int64_t tick_ns = TickClock::now_ns();
  anchors.observe();
  int64_t later_ns = tick_ns + 1000;
  CHECK_EQ(anchors.monotonic(later_ns) - anchors.monotonic(tick_ns), 1000);
}
