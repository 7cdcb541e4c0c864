#include "aggregate/times/device_times.h"

#include <algorithm>
#include <random>
#include <string>

#include "check.h"

using namespace proton;

namespace {

struct Interval {
  int64_t start_ns;
  int64_t end_ns;
  uint32_t owner;
};

struct Truth {
  int64_t covered_ns = 0;
  std::vector<int64_t> gap_ns; ///< by owner of the interval behind
};

// Sorts everything and merges it.
Truth brute_force(std::vector<Interval> all, size_t owners) {
  Truth truth;
  truth.gap_ns.resize(owners);
  std::stable_sort(all.begin(), all.end(),
                   [](auto &left, auto &right) { return left.start_ns < right.start_ns; });
  int64_t until_ns = all.front().start_ns;
  for (const Interval &one : all) {
    if (one.start_ns > until_ns)
      truth.gap_ns[one.owner] += one.start_ns - until_ns;
    truth.covered_ns += std::max<int64_t>(0, one.end_ns - std::max(one.start_ns, until_ns));
    until_ns = std::max(until_ns, one.end_ns);
  }
  return truth;
}

struct Outcome {
  int64_t covered_ns, late_ns;
  std::vector<int64_t> gap_ns;
};

Outcome online(const std::vector<Interval> &all, size_t fewest_open, size_t owners) {
  IntervalUnion covered(fewest_open);
  Outcome outcome{0, 0, std::vector<int64_t>(owners)};
  auto give = [&](const Gap &gap) { outcome.gap_ns[gap.owner] += gap.end_ns - gap.start_ns; };
  for (const Interval &one : all)
    if (covered.add(one.start_ns, one.end_ns, one.owner))
      covered.close_older(give);
  covered.for_each_open_gap(give);
  outcome.covered_ns = covered.covered_ns();
  outcome.late_ns = covered.late_ns();
  return outcome;
}

// Starts ascend in steps of up to 40, and no two are equal, so that every gap has one owner.
std::vector<Interval> random_work(std::mt19937 &random, size_t count, uint32_t owners) {
  std::vector<Interval> all;
  int64_t now_ns = -1000;
  for (size_t i = 0; i < count; ++i) {
    now_ns += 1 + static_cast<int64_t>(random() % 40);
    auto length_ns = static_cast<int64_t>(random() % (random() % 50 == 0 ? 2000 : 30));
    all.push_back({now_ns, now_ns + length_ns, static_cast<uint32_t>(random() % owners)});
  }
  return all;
}

// No interval leaves its block of `window`.
void shuffle_within(std::vector<Interval> &all, size_t window, std::mt19937 &random) {
  for (size_t begin = 0; begin < all.size(); begin += window) {
    auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(begin + window, all.size()));
    std::shuffle(first, last, random);
  }
}

constexpr uint32_t kOwners = 5;

void add(IntervalUnion &target, int64_t start_ns, int64_t end_ns, uint32_t owner) {
  if (target.add(start_ns, end_ns, owner))
    target.close_older([](const Gap &) {});
}

} // namespace

TEST(touching_and_overlapping_intervals_are_one) {
  IntervalUnion covered(4);
  add(covered, 10, 20, 1);
  add(covered, 20, 30, 2);
  add(covered, 15, 18, 3);
  CHECK_EQ(covered.covered_ns(), 20);
  CHECK_EQ(covered.first_owner(), 1);
  int gaps = 0;
  covered.for_each_open_gap([&](const Gap &) { ++gaps; });
  CHECK_EQ(gaps, 0);
}

TEST(an_interval_across_several_joins_them) {
  IntervalUnion covered(8);
  for (int64_t start_ns : {10, 30, 50, 70})
    add(covered, start_ns, start_ns + 5, 0);
  add(covered, 12, 52, 1);
  CHECK_EQ(covered.covered_ns(), 50);
  add(covered, 0, 5, 2);
  CHECK_EQ(covered.covered_ns(), 55);
  CHECK_EQ(covered.first_start_ns(), 0);
  CHECK_EQ(covered.first_owner(), 2);
}

TEST(shuffled_within_the_open_part_everything_is_exact) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    size_t window = 1 + random() % 40;
    std::vector<Interval> all = random_work(random, 400, kOwners);
    Truth truth = brute_force(all, kOwners);
    shuffle_within(all, window, random);
    // Those of two neighbouring windows at most lie between the earliest and the latest.
    Outcome outcome = online(all, 2 * window, kOwners);
    CHECK_EQ(outcome.covered_ns, truth.covered_ns);
    CHECK_EQ(outcome.late_ns, 0);
    CHECK((outcome.gap_ns == truth.gap_ns));
  }
}

TEST(of_late_intervals_the_bounds_hold_and_nothing_is_counted_twice) {
  std::mt19937 random(2);
  bool was_late = false;
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> all = random_work(random, 300, kOwners);
    Truth truth = brute_force(all, kOwners);
    shuffle_within(all, 1 + random() % 300, random);
    Outcome outcome = online(all, 1 + random() % 16, kOwners);
    CHECK(outcome.covered_ns <= truth.covered_ns);
    CHECK(truth.covered_ns <= outcome.covered_ns + outcome.late_ns);
    was_late = was_late || outcome.late_ns != 0;
    int64_t gaps_ns = 0;
    for (int64_t gap_ns : outcome.gap_ns)
      gaps_ns += gap_ns;
    int64_t last_ns = 0;
    for (const Interval &one : all)
      last_ns = std::max(last_ns, one.end_ns);
    IntervalUnion whole(all.size());
    for (const Interval &one : all)
      add(whole, one.start_ns, one.end_ns, one.owner);
    if (outcome.late_ns == 0)
      CHECK_EQ(gaps_ns + outcome.covered_ns, last_ns - whole.first_start_ns());
  }
  CHECK(was_late);
}

TEST(what_comes_before_the_closed_part_is_late_and_not_covered) {
  IntervalUnion covered(2);
  for (int64_t start_ns : {100, 200, 300, 400})
    add(covered, start_ns, start_ns + 10, 0);
  add(covered, 150, 205, 0); // closed up to 210
  CHECK_EQ(covered.covered_ns(), 40);
  CHECK_EQ(covered.late_ns(), 55);
  add(covered, 205, 250, 0); // from 210 on it is exact
  CHECK_EQ(covered.covered_ns(), 80);
  CHECK_EQ(covered.late_ns(), 60);
}
