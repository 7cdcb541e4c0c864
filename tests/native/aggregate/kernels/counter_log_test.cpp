// Which kernels a session keeps beside samples of hardware counters, and how its memory is bounded.
#include "aggregate/kernels/counter_log.h"

#include <memory>

#include "check.h"

using namespace proton;
using Rest = CounterLog::Rest;

namespace {

constexpr int32_t kDevice = 0;
const auto kMetrics = std::make_shared<const std::vector<std::string>>(
    std::vector<std::string>{"sm__cycles_elapsed.avg"});

/// Samples of 10 ns, one after the other.
std::shared_ptr<const CounterBurst> burst_of(int64_t start_ns, int64_t end_ns) {
  auto burst = std::make_shared<CounterBurst>();
  burst->metrics = kMetrics;
  for (int64_t at_ns = start_ns; at_ns < end_ns; at_ns += 10) {
    burst->start_ns.push_back(at_ns);
    burst->end_ns.push_back(at_ns + 10);
    burst->counts.push_back(1.0);
  }
  return burst;
}

void record(CounterLog &log, int64_t start_ns, int64_t end_ns, int32_t device = kDevice) {
  log.begin(device, start_ns - 5);
  log.end(device, burst_of(start_ns, end_ns), 0);
}

} // namespace

TEST(kernels_that_overlap_samples_are_kept_also_when_their_records_come_late) {
  CounterLog log;
  log.begin(kDevice, 90);
  log.add(0, 1, kDevice, 10, 90);  // over before the burst
  log.add(0, 2, kDevice, 50, 110); // runs into it
  log.add(0, 3, kDevice, 92, 95);  // over before its first sample
  log.add(0, 4, kDevice, 150, 160);
  log.end(kDevice, burst_of(100, 200), 0);
  log.begin(kDevice, 290); // the next burst is open
  log.add(0, 5, kDevice, 190, 310);
  log.add(0, 6, kDevice, 200, 250); // between both
  log.end(kDevice, burst_of(300, 400), 0);

  std::vector<JoinedBurst> taken = log.take(0, false);
  CHECK_EQ(taken.size(), 2u);
  CHECK(taken[0].nodes == (std::vector<NodeIndex>{2, 4, 5}));
  CHECK(taken[0].kernel_start_ns == (std::vector<int64_t>{50, 150, 190}));
  CHECK(taken[0].kernel_end_ns == (std::vector<int64_t>{110, 160, 310}));
  CHECK(taken[1].nodes == (std::vector<NodeIndex>{5}));
  CHECK(log.take(0, false).empty()); // each is taken once
  CHECK(log.metrics() == *kMetrics);
}

TEST(bursts_of_two_devices_and_kernels_of_two_phases_are_kept_apart) {
  CounterLog log;
  log.begin(0, 95);
  log.add(0, 1, 0, 100, 150);
  log.add(0, 2, 1, 100, 150); // of the other device
  log.add(1, 3, 0, 150, 160); // of the next phase
  log.end(0, burst_of(100, 200), 1);
  log.begin(1, 295);
  log.end(1, burst_of(300, 400), 1);
  log.add(1, 4, 1, 350, 360);

  std::vector<JoinedBurst> first = log.take(0, true);
  CHECK_EQ(first.size(), 1u);
  CHECK(first[0].nodes == (std::vector<NodeIndex>{1}));
  std::vector<JoinedBurst> second = log.take(1, true);
  CHECK_EQ(second.size(), 2u);
  CHECK_EQ(second[0].device, 0);
  CHECK_EQ(second[1].device, 1);
  log.forget_phase(1);
  CHECK(log.take(1, true).empty());
}

TEST(a_phase_takes_the_samples_of_its_own_time_with_all_that_ran_in_them) {
  CounterLog log;
  log.begin(kDevice, 95);
  log.add(0, 1, kDevice, 100, 143);
  log.add(0, 2, kDevice, 145, 152); // both phases ran in the samples from 140 to 160
  log.add(1, 1, kDevice, 148, 190);
  log.end(kDevice, burst_of(100, 200), 1);

  std::vector<JoinedBurst> first = log.take(0, true);
  CHECK_EQ(first.size(), 1u);
  CHECK_EQ(first[0].first_sample, 0u);
  CHECK_EQ(first[0].end_sample, 6u);
  CHECK(first[0].nodes == (std::vector<NodeIndex>{1, 2, 1}));
  CHECK(first[0].is_own == (std::vector<uint8_t>{1, 1, 0}));
  log.forget_before(1);
  std::vector<JoinedBurst> second = log.take(1, true);
  CHECK_EQ(second.size(), 1u);
  CHECK_EQ(second[0].first_sample, 4u);
  CHECK_EQ(second[0].end_sample, 9u);
  CHECK(second[0].nodes == (std::vector<NodeIndex>{1, 2, 1})); // they ran in the sample from 140
  CHECK(second[0].is_own == (std::vector<uint8_t>{0, 0, 1}));
}

TEST(a_burst_stays_until_no_phase_can_have_kernels_in_it) {
  CounterLog log;
  log.begin(kDevice, 95);
  log.add(0, 1, kDevice, 100, 110);
  log.end(kDevice, burst_of(100, 200), 1); // phase 1 had begun
  CHECK_EQ(log.take(0, true).size(), 1u);
  log.forget_before(1);
  log.add(1, 2, kDevice, 150, 160); // its record came late
  CHECK_EQ(log.take(1, true).size(), 1u);
  log.forget_before(2);
  log.add(1, 2, kDevice, 170, 180);
  CHECK(log.take(1, true).empty());
}

TEST(a_phase_is_whole_when_no_burst_in_which_it_ran_is_open) {
  CounterLog log;
  record(log, 100, 200);
  CHECK(log.rest_of(0) == Rest::kNothing);
  log.add(0, 1, kDevice, 110, 120);
  CHECK(log.rest_of(0) == Rest::kWhole);
  log.begin(kDevice, 290);
  CHECK(log.rest_of(0) == Rest::kWhole);
  log.add(0, 1, kDevice, 310, 320);
  CHECK(log.rest_of(0) == Rest::kOpen);
  log.end(kDevice, burst_of(300, 400), 0);
  CHECK(log.rest_of(0) == Rest::kWhole);
  log.take(0, false);
  CHECK(log.rest_of(0) == Rest::kNothing);
}

TEST(a_phase_whose_kernels_all_missed_the_samples_does_not_wait) {
  CounterLog log;
  log.begin(kDevice, 90);
  log.add(0, 1, kDevice, 92, 95); // over before the first sample
  log.add(1, 1, kDevice, 150, 160);
  log.add(2, 1, kDevice, 205, 210); // after the last one, before the burst's end was known
  log.end(kDevice, burst_of(100, 200), 2);

  CHECK(log.rest_of(0) == Rest::kNothing);
  CHECK(log.rest_of(1) == Rest::kWhole);
  CHECK(log.rest_of(2) == Rest::kNothing);
}

TEST(kernels_of_a_phase_that_was_cleared_are_not_those_of_its_number) {
  CounterLog log;
  log.begin(kDevice, 95);
  log.add(0, 1, kDevice, 100, 150);
  log.forget_phase(0); // which goes on, empty
  log.add(0, 2, kDevice, 150, 160);
  log.end(kDevice, burst_of(100, 200), 0);
  std::vector<JoinedBurst> taken = log.take(0, false);
  CHECK_EQ(taken.size(), 1u);
  CHECK(taken[0].is_own == (std::vector<uint8_t>{0, 1}));
}

TEST(taking_leaves_a_burst_that_is_open_alone) {
  CounterLog log;
  record(log, 100, 200);
  log.add(0, 1, kDevice, 110, 120);
  log.begin(kDevice, 290);
  log.add(0, 2, kDevice, 310, 320);
  CHECK_EQ(log.take(0, false).size(), 1u);
  log.end(kDevice, burst_of(300, 400), 0);
  std::vector<JoinedBurst> taken = log.take(0, false);
  CHECK_EQ(taken.size(), 1u);
  CHECK(taken[0].nodes == (std::vector<NodeIndex>{2}));
}

TEST(a_burst_that_came_to_nothing_is_forgotten_with_its_kernels) {
  CounterLog log;
  log.begin(kDevice, 90);
  log.add(0, 1, kDevice, 100, 150);
  CHECK(!log.end(kDevice, std::make_shared<CounterBurst>(), 0));
  CHECK(!log.end(kDevice, burst_of(100, 200), 0)); // none is open
  CHECK(log.take(0, false).empty());
  CHECK(log.metrics().empty());
}

TEST(samples_of_other_metrics_do_not_mix) {
  CounterLog log;
  record(log, 100, 200);
  auto other = std::make_shared<CounterBurst>(*burst_of(300, 400));
  other->metrics =
      std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"other"});
  log.begin(kDevice, 290);
  log.add(0, 1, kDevice, 310, 320);
  log.end(kDevice, other, 0);
  CHECK(log.take(0, false).empty());
  CHECK(log.metrics() == *kMetrics);
}

TEST(every_second_burst_is_dropped_when_there_are_too_many_and_the_rest_stay_spread) {
  CounterLog log(8);
  uint64_t thinned = 0;
  for (int64_t i = 0; i < 9; ++i) {
    log.begin(kDevice, 1000 * i);
    log.add(0, static_cast<NodeIndex>(i), kDevice, 1000 * i + 10, 1000 * i + 90);
    thinned += log.end(kDevice, burst_of(1000 * i + 10, 1000 * i + 100), 0) ? 1 : 0;
  }
  CHECK_EQ(thinned, 1u);
  CHECK_EQ(log.dropped_bursts(), 4u);
  std::vector<JoinedBurst> taken = log.take(0, false);
  CHECK_EQ(taken.size(), 5u);
  for (size_t i = 0; i < taken.size(); ++i)
    CHECK_EQ(taken[i].nodes.front(), 2 * i);
}

TEST(kernels_are_bounded_too) {
  CounterLog log(512, 100);
  for (int64_t i = 0; i < 50; ++i) {
    log.begin(kDevice, 1000 * i);
    for (int64_t kernel = 0; kernel < 30; ++kernel)
      log.add(0, 1, kDevice, 1000 * i + 10, 1000 * i + 90);
    log.end(kDevice, burst_of(1000 * i + 10, 1000 * i + 100), 0);
  }
  size_t kernels = 0;
  for (const JoinedBurst &burst : log.take(0, false))
    kernels += burst.nodes.size();
  CHECK(kernels > 0 && kernels <= 100);
  CHECK(log.dropped_bursts() > 0);
}
