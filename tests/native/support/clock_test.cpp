#include "support/clock.h"

#include "check.h"

TEST(the_clock_never_goes_back) {
  int64_t last = proton::monotonic_ns();
  bool is_rising = true;
  for (int i = 0; i < 10000; ++i) {
    int64_t now = proton::monotonic_ns();
    is_rising = is_rising && now >= last;
    last = now;
  }
  CHECK(is_rising);
}

TEST(the_clock_counts_nanoseconds_of_clock_monotonic) {
  int64_t before = proton::monotonic_ns();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t middle = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  int64_t after = proton::monotonic_ns();
  CHECK(before <= middle && middle <= after);
}
