#include "record/collective_log.h"

#include <algorithm>
#include <string>

#include "check.h"

namespace {

using proton::Collective;
using proton::CollectiveLog;

CollectiveLog &fresh() {
  CollectiveLog &log = CollectiveLog::instance();
  log.forget_calls();
  return log;
}

void call(CollectiveLog &log, const char *name, const char *group = "") {
  log.end(log.begin(name, group, 4, 8));
}

} // namespace

TEST(calls_of_a_group_are_numbered_together_and_those_of_others_apart) {
  CollectiveLog &log = fresh();
  CHECK(log.contents().kinds.empty()); // the first test: numbers go on

  call(log, "gloo:all_reduce", "a");
  call(log, "gloo:broadcast", "a");
  call(log, "gloo:all_reduce", "b");
  call(log, "gloo:all_reduce", "a");

  CollectiveLog::Contents contents = log.contents();
  CHECK_EQ(contents.kinds.size(), 3);
  CHECK_EQ(contents.calls[0].bytes, 8);
  CHECK_EQ(contents.kinds[2].group, std::string("b"));
  std::vector<uint64_t> numbers;
  for (const Collective &each : contents.calls)
    numbers.push_back(each.number);
  CHECK((numbers == std::vector<uint64_t>{0, 1, 0, 2}));
}

TEST(calls_between_two_ranks_do_not_count_for_the_others) {
  CollectiveLog &log = fresh();

  call(log, "gloo:send");
  call(log, "gloo:all_reduce");

  CHECK_EQ(log.contents().calls.back().number, 0);
}

TEST(numbers_go_on_where_calls_are_forgotten) {
  CollectiveLog &log = fresh();
  call(log, "gloo:all_reduce", "goes on");
  log.forget_calls();
  CHECK(log.contents().calls.empty());

  call(log, "gloo:all_reduce", "goes on");

  CHECK_EQ(log.contents().calls.back().number, 1);
}

TEST(of_many_calls_those_with_round_numbers_are_kept_whichever_ended_first) {
  CollectiveLog &log = fresh();
  constexpr uint64_t kCalls = 3 * CollectiveLog::kMost;

  for (uint64_t i = 0; i < kCalls; i += 2) {
    Collective first = log.begin("gloo:all_reduce", "many", 0, 0);
    call(log, "gloo:all_reduce", "many");
    log.end(first);
  }

  CollectiveLog::Contents contents = log.contents();
  CHECK_EQ(contents.every, 4);
  CHECK_EQ(contents.calls.size(), kCalls / 4);
  CHECK(std::all_of(contents.calls.begin(), contents.calls.end(), [](const Collective &each) {
    return each.number % 4 == 0 && each.end_ns >= each.start_ns;
  }));
}

TEST(a_call_that_a_kernel_does_has_the_times_of_the_kernel) {
  CollectiveLog &log = fresh();
  log.launched(log.begin("nccl:all_reduce", "", 0, 8), 17);

  log.ran(16, 1, 2);
  CHECK_EQ(log.contents().calls[0].end_ns, 0);
  log.ran(17, 100, 130);
  log.ran(17, 200, 230);

  CollectiveLog::Contents contents = log.contents();
  CHECK_EQ(contents.calls.size(), 1);
  CHECK_EQ(contents.calls[0].start_ns, 100);
  CHECK_EQ(contents.calls[0].end_ns, 130);
}

TEST(kernels_of_nccl_are_known_by_their_names) {
  CHECK(proton::is_collective_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"));
  CHECK(!proton::is_collective_kernel("add_kernel"));
  CHECK(!proton::is_collective_kernel("nc"));
  CHECK(!proton::is_collective_kernel(nullptr));
}
