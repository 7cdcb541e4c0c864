#include "calltree/call_path_tree.h"

#include "check.h"

using namespace proton;

TEST(buckets_ascend_and_an_octave_has_eight) {
  uint32_t before = LaunchLatency::bucket(0);
  CHECK_EQ(before, 0);
  for (int64_t value = 1; value < 5000; ++value) {
    uint32_t bucket = LaunchLatency::bucket(value);
    CHECK(bucket == before || bucket == before + 1);
    before = bucket;
  }
  CHECK_EQ(LaunchLatency::bucket(8), 8);
  CHECK_EQ(LaunchLatency::bucket(16), 16);
  CHECK_EQ(LaunchLatency::bucket(17), 16);
  CHECK_EQ(LaunchLatency::bucket(18), 17);
  CHECK_EQ(LaunchLatency::bucket(1024), 64);
}

TEST(latencies_of_clocks_that_disagree_do_not_count) {
  LaunchLatency latency, merged;
  CHECK(!latency.add(-5));
  CHECK(!latency.add(int64_t{1} << 43));
  merged.merge(latency);
  CHECK(latency.add(7));
  CHECK_EQ(latency.count, 1);
  CHECK_EQ(latency.clamped, 2);
  CHECK_EQ(latency.sum_ns, 7);
  CHECK_EQ(latency.min_ns, 7);
  CHECK_EQ(latency.buckets[0], 0);
  CHECK_EQ(merged.count, 0);
  CHECK_EQ(merged.clamped, 2);
}

TEST(merged_latencies_are_those_of_both) {
  LaunchLatency left, right, empty;
  left.add(3);
  right.add(100);
  right.add(1);
  left.merge(right);
  left.merge(empty);
  CHECK_EQ(left.count, 3);
  CHECK_EQ(left.sum_ns, 104);
  CHECK_EQ(left.min_ns, 1);
  CHECK_EQ(left.max_ns, 100);
  empty.merge(right);
  CHECK_EQ(empty.min_ns, 1);
}

TEST(a_latency_of_years_neither_overflows_nor_takes_memory) {
  LaunchLatency latency;
  for (int i = 0; i < 3; ++i)
    latency.add(INT64_MAX);
  CHECK_EQ(latency.clamped, 3);
  CHECK(latency.buckets.size() < 400);
}
