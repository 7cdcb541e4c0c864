#include "support/tick_clock.h"

#include <cstdlib>
#include <thread>

#include "check.h"

using namespace proton;

namespace {

// Busy for at least that long by CLOCK_MONOTONIC.
void wait_ns(int64_t duration_ns) {
  int64_t start_ns = monotonic_ns();
  while (monotonic_ns() - start_ns < duration_ns) {
  }
}

} // namespace

TEST(before_calibration_it_is_the_clock_of_the_host) {
  int64_t before_ns = monotonic_ns();
  int64_t now_ns = TickClock::now_ns();
  CHECK(before_ns <= now_ns);
  CHECK(now_ns <= monotonic_ns());
}

TEST(durations_are_those_of_the_host_clock) {
  bool uses_counter = TickClock::calibrate();
  CHECK_EQ(TickClock::calibrate(), uses_counter);
  int64_t outer_ns = monotonic_ns(), start_ns = TickClock::now_ns();
  int64_t inner_ns = monotonic_ns();
  wait_ns(20'000'000);
  int64_t inner = monotonic_ns() - inner_ns;
  int64_t measured = TickClock::now_ns() - start_ns;
  int64_t outer = monotonic_ns() - outer_ns;
  CHECK(measured >= inner - inner / 1000);
  CHECK(measured <= outer + outer / 1000);
}

TEST(a_later_reading_on_another_thread_is_later) {
  TickClock::calibrate();
  int64_t start_ns = TickClock::now_ns(), end_ns = 0;
  std::thread([&] {
    wait_ns(1'000'000);
    end_ns = TickClock::now_ns();
  }).join();
  CHECK(end_ns - start_ns >= 900'000);
}
