#include "aggregate/times/device_times.h"

#include "check.h"

using namespace proton;

TEST(a_span_is_paused_where_pauses_overlap_it) {
  PauseList pauses;
  CHECK_EQ(pauses.within(0, 100), 0);
  pauses.pause(10);
  pauses.resume(20);
  pauses.pause(50);
  pauses.resume(60);
  CHECK_EQ(pauses.within(0, 100), 20);
  CHECK_EQ(pauses.within(15, 55), 10);
  CHECK_EQ(pauses.within(20, 50), 0);
  CHECK_EQ(pauses.within(60, 90), 0);
}

TEST(a_pause_lasts_until_the_session_goes_on) {
  PauseList pauses;
  pauses.resume(5); // the first start does not end a pause
  pauses.pause(10);
  CHECK_EQ(pauses.within(0, 1000), 990);
  pauses.resume(20);
  CHECK_EQ(pauses.within(0, 1000), 10);
}

TEST(of_very_many_pauses_the_newest_are_known) {
  PauseList pauses;
  constexpr int64_t kPauses = 100'000;
  for (int64_t i = 0; i < kPauses; ++i) {
    pauses.pause(10 * i);
    pauses.resume(10 * i + 5);
  }
  CHECK_EQ(pauses.within(10 * (kPauses - 1000), 10 * kPauses), 5000);
}
