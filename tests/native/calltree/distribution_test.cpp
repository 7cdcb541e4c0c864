#include "calltree/distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "check.h"

using namespace proton;

namespace {

uint64_t total(const Sketch &sketch) {
  return std::accumulate(sketch.counts.begin(), sketch.counts.end(), uint64_t{0});
}

// Upper bound of the bucket that holds the q-quantile.
double quantile(const Sketch &sketch, double q) {
  auto rank = static_cast<uint64_t>(q * static_cast<double>(total(sketch) - 1));
  uint64_t seen = 0;
  for (size_t i = 0; i < sketch.counts.size(); ++i) {
    seen += sketch.counts[i];
    if (seen > rank)
      return std::pow(kSketchGamma, sketch.first_index + static_cast<int32_t>(i));
  }
  return 0;
}

} // namespace

TEST(moments_are_those_of_the_samples) {
  Distribution distribution;
  for (double value : {4.0, 1.0, 2.0})
    distribution.add(value, true);
  CHECK_EQ(distribution.n, 3);
  CHECK_EQ(distribution.sum, 7.0);
  CHECK_EQ(distribution.min, 1.0);
  CHECK_EQ(distribution.max, 4.0);
  CHECK(std::abs(distribution.sum_ln - std::log(8.0)) < 1e-12);
  CHECK_EQ(distribution.samples.size(), 3);
}

TEST(values_that_are_not_positive_stay_out_of_the_logarithms) {
  Distribution distribution;
  distribution.add(0, true);
  distribution.add(-2, true);
  distribution.add(1, true);
  CHECK_EQ(distribution.zero_count, 2);
  CHECK_EQ(distribution.sum_ln, 0.0);
  CHECK_EQ(distribution.min, -2.0);
}

TEST(sixty_four_samples_are_raw_and_the_next_begins_a_sketch_of_all) {
  Distribution distribution;
  for (size_t i = 0; i < kMaxRawSamples; ++i)
    distribution.add(static_cast<double>(i), true);
  CHECK(!distribution.sketch);
  distribution.add(1000, true);
  CHECK(distribution.sketch != nullptr);
  CHECK_EQ(total(*distribution.sketch) + distribution.zero_count, distribution.n);
}

TEST(quantiles_of_the_sketch_are_within_its_accuracy) {
  Distribution distribution;
  for (int i = 1; i <= 10000; ++i)
    distribution.add(10000 + i, true);
  for (double q : {0.01, 0.5, 0.99}) {
    double exact = 10001 + std::floor(q * 9999);
    double error = std::abs(quantile(*distribution.sketch, q) - exact) / exact;
    CHECK(error < kSketchGamma - 1 + 1e-9); // the bound of a bucket, not its middle
  }
}

TEST(a_sketch_takes_samples_in_any_order) {
  Sketch rising, falling;
  for (int i = 1; i <= 500; ++i) {
    rising.add(i);
    falling.add(501 - i);
  }
  CHECK_EQ(total(rising), total(falling));
  CHECK_EQ(quantile(rising, 0.9), quantile(falling, 0.9));
}

TEST(past_the_cap_the_lowest_buckets_collapse_and_nothing_is_lost) {
  Sketch sketch;
  for (int i = 0; i < 2000; ++i)
    sketch.add(std::log(std::pow(1.1, i % 200)));
  CHECK(sketch.counts.size() <= kMaxBuckets);
  CHECK(sketch.collapsed);
  CHECK_EQ(total(sketch), 2000);
  double largest = std::pow(1.1, 199);
  CHECK(std::abs(quantile(sketch, 1.0) - largest) / largest < 0.003);
}

TEST(extreme_values_neither_grow_the_sketch_nor_lose_samples) {
  Sketch sketch;
  for (double value : {1e-300, 1e300, 1.0, 5e-324, 1e308})
    sketch.add(std::log(value));
  CHECK(sketch.counts.size() <= kMaxBuckets);
  CHECK_EQ(total(sketch), 5);
}

TEST(without_budget_moments_go_on_alone) {
  Distribution distribution;
  for (int i = 1; i <= 70; ++i)
    distribution.add(i, true);
  distribution.add(71, false);
  distribution.add(72, true);
  CHECK(distribution.moments_only);
  CHECK(distribution.samples.empty());
  CHECK(!distribution.sketch);
  CHECK_EQ(distribution.n, 72);
  CHECK_EQ(distribution.sum, 72.0 * 73 / 2);
}
