#include "calltree/metric_columns.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "check.h"

using namespace proton;

namespace {

uint64_t total(const Sketch &sketch) {
  uint64_t sum = 0;
  for (const Sketch::Bucket &bucket : sketch.buckets())
    sum += bucket.count;
  return sum;
}

double bucket_ratio(const Sketch &sketch) {
  return std::pow(sketch.gamma(), std::pow(2.0, sketch.collapses()));
}

// The largest relative distance of a bucket's middle from its values.
double error_of(const Sketch &sketch) {
  return (bucket_ratio(sketch) - 1) / (bucket_ratio(sketch) + 1);
}

// The middle of the bucket that holds the value of this rank.
double at_rank(const Sketch &sketch, uint64_t rank) {
  double ratio = bucket_ratio(sketch);
  for (const Sketch::Bucket &bucket : sketch.buckets()) {
    if (bucket.count > rank)
      return 2 * std::pow(ratio, bucket.index) / (ratio + 1);
    rank -= bucket.count;
  }
  return 0;
}

constexpr double kQuantiles[] = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};

// Checks each quantile of the values within the error that the sketch states.
void check_quantiles(const Distribution &distribution, std::vector<double> values) {
  const Sketch &sketch = *distribution.sketch;
  std::sort(values.begin(), values.end());
  CHECK_EQ(total(sketch) + distribution.zero_count, values.size());
  double allowed = (1 + error_of(sketch)) * (1 + distribution.value_error) - 1 + 1e-9;
  for (double q : kQuantiles) {
    auto rank = static_cast<uint64_t>(q * static_cast<double>(values.size() - 1));
    double exact = values[rank];
    CHECK(std::abs(at_rank(sketch, rank) - exact) <= allowed * exact);
  }
}

std::vector<double> over_nine_decades(size_t count, std::mt19937_64 &random) {
  std::uniform_real_distribution<double> exponent(0, 9);
  std::vector<double> values(count);
  for (double &value : values)
    value = std::pow(10.0, exponent(random));
  return values;
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
  CHECK_EQ(distribution.samples.capacity(), 0);
  CHECK_EQ(total(*distribution.sketch) + distribution.zero_count, distribution.n);
}

TEST(quantiles_within_a_factor_of_twenty_keep_the_finest_buckets) {
  Distribution distribution;
  std::vector<double> values;
  for (int i = 0; i < 200'000; ++i)
    values.push_back(1000 * std::exp(3.0 * i / 200'000));
  for (double value : values)
    distribution.add(value, true);
  CHECK_EQ(distribution.sketch->collapses(), 0);
  check_quantiles(distribution, values);
}

TEST(a_sketch_takes_samples_in_any_order) {
  Sketch rising, falling;
  for (int i = 1; i <= 500; ++i) {
    rising.add(i);
    falling.add(501 - i);
  }
  CHECK_EQ(total(rising), total(falling));
  CHECK_EQ(rising.collapses(), falling.collapses());
  CHECK_EQ(at_rank(rising, 450), at_rank(falling, 450));
}

TEST(a_slow_first_sample_leaves_the_quantiles_of_the_others_alone) {
  Distribution with, without;
  for (int i = 0; i < 3000; ++i) {
    double value = 5000 + i % 100;
    if (i == 0)
      with.add(10'000 * value, true);
    with.add(value, true);
    without.add(value, true);
  }
  CHECK_EQ(with.sketch->collapses(), 0);
  for (uint64_t rank : {30, 1500, 2970})
    CHECK_EQ(at_rank(*with.sketch, rank), at_rank(*without.sketch, rank));
}

TEST(a_million_samples_over_nine_decades_stay_within_the_stated_error) {
  std::mt19937_64 random(11);
  std::vector<double> values = over_nine_decades(1'000'000, random);
  Distribution distribution;
  for (double value : values)
    distribution.add(value, true);
  CHECK(distribution.sketch->bytes() <= sizeof(Sketch) + kMaxSketchBytes + 64);
  CHECK(error_of(*distribution.sketch) < 0.02);
  check_quantiles(distribution, values);
}

TEST(a_thousand_batches_of_counted_values_stay_within_the_stated_error) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> off(-0.03, 0.03);
  Distribution distribution;
  std::vector<double> values;
  for (int batch = 0; batch < 1000; ++batch) {
    std::vector<CountedSamples::Bin> bins;
    CountedSamples counted;
    counted.min = 1e9;
    for (double value : over_nine_decades(1 + random() % 100, random)) {
      uint64_t count = 1 + random() % 20;
      bins.push_back({value / (1 + off(random)), count});
      values.insert(values.end(), count, value);
      counted.n += count;
      counted.sum += value * static_cast<double>(count);
      counted.min = std::min(counted.min, value);
      counted.max = std::max(counted.max, value);
    }
    counted.bins = bins;
    counted.value_error = 0.0310;
    distribution.add(counted, true);
    // Own samples come between the batches.
    values.push_back(static_cast<double>(1 + batch));
    distribution.add(values.back(), true);
  }
  CHECK_EQ(distribution.n, values.size());
  check_quantiles(distribution, values);
}

TEST(extreme_values_neither_grow_the_sketch_nor_lose_samples) {
  Sketch sketch;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> ln(-744, 709);
  for (int i = 0; i < 20'000; ++i)
    sketch.add(ln(random));
  for (double value : {1e-300, 1e300, 1.0, 5e-324, 1e308})
    sketch.add(std::log(value));
  CHECK(sketch.bytes() <= sizeof(Sketch) + kMaxSketchBytes + 64);
  CHECK_EQ(total(sketch), 20'005);
}

TEST(counts_go_far_beyond_those_of_a_page) {
  Sketch sketch;
  for (int i = 0; i < 200'000; ++i)
    sketch.add(3.0);
  sketch.add(3.0, uint64_t{1} << 40);
  sketch.add(-5.0, (uint64_t{1} << 32) + 7);
  const std::vector<Sketch::Bucket> found = sketch.buckets();
  CHECK_EQ(found.size(), 2);
  CHECK_EQ(found[0].count, (uint64_t{1} << 32) + 7);
  CHECK_EQ(found[1].count, (uint64_t{1} << 40) + 200'000);
}

TEST(counts_survive_the_merging_of_buckets) {
  Sketch sketch;
  uint64_t added = 0;
  for (int i = 0; i < 3000; ++i) {
    uint64_t count = i % 7 == 0 ? 100'000 : 1;
    sketch.add(0.01 * i, count);
    added += count;
  }
  CHECK(sketch.collapses() > 0);
  CHECK_EQ(total(sketch), added);
}

TEST(what_a_distribution_says_that_it_grew_by_is_what_it_takes) {
  std::mt19937_64 random(9);
  Distribution distribution;
  std::ptrdiff_t grown = 0;
  for (double value : over_nine_decades(5000, random))
    grown += distribution.add(value, true);
  CHECK_EQ(grown, static_cast<std::ptrdiff_t>(distribution.sketch->bytes()));
  grown += distribution.add(1.0, false);
  CHECK_EQ(grown, 0);
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
