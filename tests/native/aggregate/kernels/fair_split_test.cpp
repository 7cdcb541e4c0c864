#include "aggregate/kernels/kernel_parts.h"

#include <cmath>
#include <numeric>
#include <random>

#include "check.h"

using namespace proton;

namespace {

uint64_t total(std::span<const uint64_t> parts) {
  return std::accumulate(parts.begin(), parts.end(), uint64_t{0});
}

} // namespace

TEST(parts_add_up_and_many_counts_come_near_to_the_shares) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> weights(1 + random() % 40);
    for (int64_t &weight : weights)
      weight = random() % 4 == 0 ? 0 : static_cast<int64_t>(random() % 1'000'000'000);
    FairSplit split(weights);
    std::vector<uint64_t> sums(weights.size());
    uint64_t all = 0;
    for (int i = 0; i < 200; ++i) {
      uint64_t count = random() % (i % 3 == 0 ? 3 : 5000);
      std::span<const uint64_t> parts = split.split(count);
      CHECK_EQ(total(parts), count);
      for (size_t part = 0; part < parts.size(); ++part)
        sums[part] += parts[part];
      all += count;
    }
    double weight_sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t part = 0; part < sums.size() && weight_sum > 0; ++part) {
      double expected = static_cast<double>(all) * static_cast<double>(weights[part]) / weight_sum;
      CHECK(std::abs(static_cast<double>(sums[part]) - expected) <
            2 + static_cast<double>(weights.size()) / 4);
    }
  }
}

TEST(single_samples_go_to_everybody_in_turn) {
  const int64_t weights[] = {1, 1, 1, 1};
  FairSplit split(weights);
  uint64_t sums[4] = {};
  for (int i = 0; i < 40; ++i)
    for (size_t part = 0; part < 4; ++part)
      sums[part] += part == 0 ? split.split(1)[0] : 0;
  CHECK_EQ(sums[0], 10);
}

TEST(huge_counts_and_no_weights_keep_their_sum) {
  const int64_t weights[] = {1, INT64_MAX / 2, 3};
  FairSplit split(weights);
  for (uint64_t count : {~uint64_t{0} >> 2, uint64_t{1} << 60, uint64_t{0}, uint64_t{1}})
    CHECK_EQ(total(split.split(count)), count);
  const int64_t nothing[] = {0, -5};
  CHECK_EQ(total(FairSplit(nothing).split(7)), 7);
}
