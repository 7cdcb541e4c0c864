#include "aggregate/times/tick_anchors.h"

#include <cstdlib>
#include <vector>

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

TEST(what_came_later_gets_a_later_time_whenever_it_is_asked_for) {
  TickClock::calibrate();
  TickAnchors anchors;
  anchors.observe();
  std::vector<int64_t> ticks, times;
  for (int64_t end_ns = monotonic_ns() + 250'000'000; monotonic_ns() < end_ns;) {
    anchors.observe();
    ticks.push_back(TickClock::now_ns());
    times.push_back(anchors.monotonic(ticks.back()));
  }
  for (size_t i = 1; i < ticks.size(); ++i) {
    CHECK(times[i - 1] <= times[i]);
    CHECK(anchors.monotonic(ticks[i - 1]) <= anchors.monotonic(ticks[i]));
  }
  // Stamps of the whole time are converted as they were at once.
  constexpr int64_t kSlackNs = 100'000;
  for (size_t i = 0; i < ticks.size(); i += 100)
    CHECK(std::abs(anchors.monotonic(ticks[i]) - times[i]) < kSlackNs);
}
