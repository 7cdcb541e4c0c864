// The tick of a device's timer, as durations of kernels show it.
#include "collector/gpu/devices/device_facts.h"

#include <cstdint>

#include "check.h"

namespace {

using proton::DeviceFacts;

/// The tick after `count` durations, made by `duration` of 0, 1, 2...
template <typename Duration> int64_t tick_of(int count, Duration duration) {
  DeviceFacts facts;
  for (int i = 0; i < count; ++i)
    facts.note(0, duration(i));
  return facts.list().at(0).tick_ns;
}

TEST(a_timer_of_32_ns_shows_in_multiples) {
  CHECK_EQ(tick_of(64, [](int i) { return 32 * (i + 90); }), 32);
}

TEST(a_timer_of_32_ns_shows_where_another_clock_rounds_by_a_nanosecond) {
  // As on an H200 with CLOCK_MONOTONIC: a third of all times is 1 ns off, mostly short.
  CHECK_EQ(tick_of(64, [](int i) { return 32 * (i + 90) + (i % 16 == 5) - (i % 3 == 0); }), 32);
}

TEST(a_timer_of_a_nanosecond_has_no_coarser_tick) {
  CHECK_EQ(tick_of(1000, [](int i) { return 5000 + i; }), 1);
}

TEST(a_timer_of_four_nanoseconds_is_not_taken_for_a_coarser_one) {
  CHECK_EQ(tick_of(1000, [](int i) { return 5000 + 4 * i; }), 4);
}

TEST(few_or_no_durations_show_no_tick) {
  CHECK_EQ(tick_of(31, [](int i) { return 32 * (i + 90); }), 0);
  CHECK_EQ(tick_of(64, [](int) { return 0; }), 0);
}

TEST(a_device_that_is_not_known_counts_like_others) {
  DeviceFacts facts;
  for (int i = 0; i < 64; ++i)
    facts.note(-1, 32 * (i + 90));
  CHECK_EQ(facts.list().at(-1).tick_ns, 32);
}

TEST(the_shortest_durations_are_not_multiples_of_anything) {
  CHECK_EQ(tick_of(64, [](int) { return 1; }), 1);
}

} // namespace
