// Sums and extremes over the lanes of a warp.
#pragma once

#include "collector/instrumentation/device/warp.h"
#include "record/cycle_record.h"

namespace proton::device {

struct ScopeSum {
  uint64_t count;
  uint64_t cycles;
  uint64_t min_complement; ///< 0 while count is 0
  uint64_t max_cycles;
};

/// cycle_bucket() with the device's own bit count.
PB_DEVICE uint32_t bucket_of(uint64_t cycles) {
  constexpr uint32_t kPerOctave = 1u << kBucketsPerOctaveLog2;
  if (cycles < kPerOctave)
    return static_cast<uint32_t>(cycles);
  uint32_t octave = highest_bit(cycles) - kBucketsPerOctaveLog2;
  uint32_t inside = static_cast<uint32_t>(cycles >> octave) & (kPerOctave - 1);
  uint32_t bucket = (octave + 1) * kPerOctave + inside;
  return bucket < kCycleBuckets ? bucket : kCycleBuckets - 1;
}

/// The lane with the smallest value, the first of equal ones; `among` is not 0.
PB_DEVICE uint32_t lane_of_smallest(const Lanes<uint64_t> &values, uint32_t among) {
  Lanes<uint32_t> half;
  for_lanes([&](uint32_t lane) {
    half[lane] = (among >> lane & 1) != 0 ? static_cast<uint32_t>(values[lane] >> 32) : kAllLanes;
  });
  uint32_t high = smallest(half);
  Lanes<bool> is_candidate;
  for_lanes([&](uint32_t lane) {
    is_candidate[lane] =
        (among >> lane & 1) != 0 && static_cast<uint32_t>(values[lane] >> 32) == high;
    half[lane] = is_candidate[lane] ? static_cast<uint32_t>(values[lane]) : kAllLanes;
  });
  uint32_t low = smallest(half);
  for_lanes([&](uint32_t lane) {
    is_candidate[lane] = is_candidate[lane] && static_cast<uint32_t>(values[lane]) == low;
  });
  return lowest_bit(ballot(is_candidate));
}

/// The sum of the lanes in `among`, whose values have at most 43 bits.
PB_DEVICE uint64_t sum_of(const Lanes<uint64_t> &values, uint32_t among) {
  uint64_t all = 0;
  for (uint32_t shift = 0; shift < 48; shift += 24) {
    Lanes<uint32_t> part;
    for_lanes([&](uint32_t lane) {
      bool counts = (among >> lane & 1) != 0;
      part[lane] = counts ? static_cast<uint32_t>(values[lane] >> shift) & 0xffffffu : 0;
    });
    all += static_cast<uint64_t>(sum(part)) << shift;
  }
  return all;
}

/// The sum and the extremes of the lanes in `among`.
PB_DEVICE ScopeSum sum_up(const Lanes<uint64_t> &cycles, uint32_t among) {
  Lanes<bool> is_wide;
  Lanes<uint32_t> value, least, most;
  for_lanes([&](uint32_t lane) {
    bool counts = (among >> lane & 1) != 0;
    auto low = static_cast<uint32_t>(cycles[lane]);
    is_wide[lane] = counts && cycles[lane] >> 27 != 0; // the sum of 32 might not fit 32 bits
    value[lane] = counts ? low : 0;
    least[lane] = counts ? low : kAllLanes;
    most[lane] = counts ? ~low : kAllLanes;
  });
  uint64_t count = count_bits(among);
  if (ballot(is_wide) == 0) {
    uint64_t smallest_one = smallest(least);
    return {count, sum(value), ~smallest_one, ~smallest(most)};
  }
  Lanes<uint64_t> complement;
  for_lanes([&](uint32_t lane) { complement[lane] = ~cycles[lane]; });
  return {count, sum_of(cycles, among), broadcast(complement, lane_of_smallest(cycles, among)),
          broadcast(cycles, lane_of_smallest(complement, among))};
}

} // namespace proton::device
