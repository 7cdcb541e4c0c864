// Sums of a block of the reduction in shared memory: one set per warp, and histograms that its
// warps share where they fit.
#pragma once

#include "collector/instrumentation/device/lane_sums.h"
#include "collector/instrumentation/device/reduce_task.h"
#include "record/cycle_record.h"

namespace proton::device {

/// What a warp counts, in the order of the fields of KernelTotals after `launches`.
struct Counters {
  uint64_t programs, skipped_programs, corrupt_programs, records, lost_records, unpaired_records,
      lossy_programs, lossy_warps;
};
static_assert(sizeof(Counters) == kCounters * sizeof(uint64_t));

class ScopeSums {
public:
  PB_DEVICE ScopeSums(const ReduceTask &task, unsigned char *shared, uint32_t warps, uint32_t warp)
      : task_(task), counters_(reinterpret_cast<uint64_t *>(shared)), warps_(warps), warp_(warp) {
    sums_ = reinterpret_cast<ScopeSum *>(counters_ + kCounters);
    open_ = reinterpret_cast<uint64_t *>(sums_ + warps * task.scopes);
    buckets_ = reinterpret_cast<uint32_t *>(open_ + warps * task.scopes);
  }

  PB_DEVICE void clear() {
    uint32_t words = kCounters * 2 + task_.scopes * warps_ * (kStatsBytes / 4);
    words += task_.local_buckets != 0 ? task_.scopes * kCycleBuckets : 0;
    auto *shared = reinterpret_cast<uint32_t *>(counters_);
    for_lanes([&](uint32_t lane) {
      for (uint32_t i = warp_ * kLanes + lane; i < words; i += warps_ * kLanes)
        shared[i] = 0;
    });
  }
  /// The warp's open start of a scope, as the reader packs it; 0 if there is none.
  PB_DEVICE uint64_t &open(uint32_t scope) { return open_[warp_ * task_.scopes + scope]; }

  /// Adds the durations of the lanes in `lanes`, which may belong to several scopes.
  PB_DEVICE void add(const Lanes<uint32_t> &scopes, const Lanes<uint64_t> &cycles, uint32_t lanes);
  PB_DEVICE void add(const Counters &counters) {
    const auto *values = reinterpret_cast<const uint64_t *>(&counters);
    for_lanes([&](uint32_t lane) {
      for (uint32_t i = 0; i < kCounters; ++i)
        if (lane == 0 && values[i] != 0)
          atomic_add(counters_ + i, values[i]);
    });
  }
  PB_DEVICE void flush();

private:
  PB_DEVICE ScopeTotals *totals(uint32_t scope) const {
    return reinterpret_cast<ScopeTotals *>(task_.totals + sizeof(KernelTotals)) + scope;
  }
  PB_DEVICE void add_sum(uint32_t scope, const Lanes<uint64_t> &cycles, uint32_t lanes);
  PB_DEVICE void flush_sum(uint32_t scope);

  const ReduceTask &task_;
  uint64_t *counters_;
  ScopeSum *sums_;
  uint64_t *open_;
  uint32_t *buckets_; ///< of all scopes; only with local_buckets
  uint32_t warps_;
  uint32_t warp_;
};

PB_DEVICE void ScopeSums::add(const Lanes<uint32_t> &scopes, const Lanes<uint64_t> &cycles,
                              uint32_t lanes) {
  for_lanes([&](uint32_t lane) {
    if ((lanes >> lane & 1) == 0)
      return;
    uint32_t bucket = bucket_of(cycles[lane]);
    if (task_.local_buckets != 0)
      atomic_add(buckets_ + scopes[lane] * kCycleBuckets + bucket, uint32_t{1});
    else
      atomic_add(totals(scopes[lane])->buckets + bucket, uint32_t{1});
  });
  for (uint32_t rest = lanes; rest != 0;) {
    uint32_t scope = broadcast(scopes, lowest_bit(rest));
    Lanes<bool> is_same;
    for_lanes(
        [&](uint32_t lane) { is_same[lane] = (rest >> lane & 1) != 0 && scopes[lane] == scope; });
    uint32_t same = ballot(is_same);
    add_sum(scope, cycles, same);
    rest &= ~same;
  }
}

PB_DEVICE void ScopeSums::add_sum(uint32_t scope, const Lanes<uint64_t> &cycles, uint32_t lanes) {
  ScopeSum added = sum_up(cycles, lanes);
  ScopeSum &sum = sums_[warp_ * task_.scopes + scope];
  for_lanes([&](uint32_t lane) {
    if (lane != 0) // always the same one, so that sums need no barrier
      return;
    sum.count += added.count;
    sum.cycles += added.cycles;
    sum.min_complement =
        sum.min_complement > added.min_complement ? sum.min_complement : added.min_complement;
    sum.max_cycles = sum.max_cycles > added.max_cycles ? sum.max_cycles : added.max_cycles;
  });
}

PB_DEVICE void ScopeSums::flush_sum(uint32_t scope) {
  ScopeSum all{};
  for (uint32_t warp = 0; warp < warps_; ++warp) {
    const ScopeSum &sum = sums_[warp * task_.scopes + scope];
    all.count += sum.count;
    all.cycles += sum.cycles;
    all.min_complement =
        all.min_complement > sum.min_complement ? all.min_complement : sum.min_complement;
    all.max_cycles = all.max_cycles > sum.max_cycles ? all.max_cycles : sum.max_cycles;
  }
  if (all.count == 0)
    return;
  ScopeTotals *to = totals(scope);
  atomic_add(&to->count, all.count);
  atomic_add(&to->cycles, all.cycles);
  atomic_max(&to->min_cycles, all.min_complement);
  atomic_max(&to->max_cycles, all.max_cycles);
}

PB_DEVICE void ScopeSums::flush() {
  uint64_t *kernel = &reinterpret_cast<KernelTotals *>(task_.totals)->programs;
  uint32_t buckets = task_.local_buckets != 0 ? task_.scopes * kCycleBuckets : 0;
  for_lanes([&](uint32_t lane) {
    uint32_t thread = warp_ * kLanes + lane;
    if (thread < kCounters && counters_[thread] != 0)
      atomic_add(kernel + thread, counters_[thread]);
    for (uint32_t scope = thread; scope < task_.scopes; scope += warps_ * kLanes)
      flush_sum(scope);
    for (uint32_t i = thread; i < buckets; i += warps_ * kLanes)
      if (buckets_[i] != 0)
        atomic_add(totals(i / kCycleBuckets)->buckets + i % kCycleBuckets, buckets_[i]);
  });
}

} // namespace proton::device
