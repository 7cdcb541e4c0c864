#include "context/thread/self_cost.h"

#include <thread>

#include "check.h"
#include "support/clock.h"

using namespace proton;

namespace {

constexpr int kCalls = 61 * 50;

void call_for(int64_t nanoseconds, CallKind kind = CallKind::kOther) {
  const TimedCall call(kind);
  for (int64_t start_ns = monotonic_ns(); monotonic_ns() - start_ns < nanoseconds;) {
  }
}

} // namespace

TEST(calls_are_counted_by_kind) {
  const SelfCost before = SelfCost::now();
  for (int i = 0; i < 5; ++i)
    call_for(0, CallKind::kOperator);
  call_for(0, CallKind::kNode);
  call_for(0);
  const SelfCost cost = SelfCost::now().since(before);
  CHECK_EQ(cost.operators, 5);
  CHECK_EQ(cost.nodes, 1);
}

TEST(some_calls_stand_for_all) {
  const SelfCost before = SelfCost::now();
  const int64_t start_ns = monotonic_ns();
  for (int i = 0; i < kCalls; ++i)
    call_for(2'000);
  const int64_t took_ns = monotonic_ns() - start_ns;
  const SelfCost cost = SelfCost::now().since(before);
  CHECK(cost.timed > 0 && cost.timed <= kCalls / 61);
  CHECK(cost.spent_ns() > kCalls * 1'000);
  CHECK(cost.spent_ns() < 4 * took_ns);
}

TEST(an_interrupted_call_does_not_stand_for_others) {
  const SelfCost before = SelfCost::now();
  for (int i = 0; i < 61; ++i)
    call_for(200'000);
  const SelfCost cost = SelfCost::now().since(before);
  CHECK_EQ(cost.timed, 0);
  CHECK_EQ(cost.spent_ns(), 0);
}

TEST(calls_of_other_threads_are_part_of_it) {
  const SelfCost before = SelfCost::now();
  std::thread([] {
    for (int i = 0; i < kCalls; ++i)
      call_for(0, CallKind::kOperator);
  }).join();
  CHECK_EQ(SelfCost::now().since(before).operators, kCalls);
}

TEST(reading_frames_is_part_of_it) {
  const SelfCost before = SelfCost::now();
  add_reading_ns(7);
  CHECK_EQ(SelfCost::now().since(before).spent_ns(), 7);
}

TEST(an_event_takes_time) { CHECK(event_cost_ns() > 0); }
