// Pairs the records of one segment at a time, in chunks of 32. Partners within a chunk find each
// other by the lanes of their scope; starts that a chunk leaves open wait in a table.
#pragma once

#include "collector/instrumentation/device/program_view.h"
#include "collector/instrumentation/device/scope_sums.h"

namespace proton::device {

class SegmentPairs {
public:
  PB_DEVICE explicit SegmentPairs(const ReduceTask &task)
      : task_(task), clock_mask_((static_cast<uint64_t>(1) << task.clock_bits) - 1) {}

  /// Adds the segment's pairs to `sums`. Returns whether it holds records of events, which are left
  /// out.
  PB_DEVICE bool read(const Segment &segment, ScopeSums &sums);
  /// Records without a partner so far.
  PB_DEVICE uint64_t unpaired() const { return unpaired_; }

private:
  PB_DEVICE bool read_chunk(const Lanes<uint64_t> &words, uint32_t base, uint32_t kept,
                            ScopeSums &sums);
  PB_DEVICE void close(ScopeSums &sums);

  const ReduceTask &task_;
  uint64_t clock_mask_;
  uint64_t unpaired_ = 0;
};

PB_DEVICE bool SegmentPairs::read(const Segment &segment, ScopeSums &sums) {
  auto load = [&](uint32_t base) {
    Lanes<uint64_t> words;
    for_lanes([&](uint32_t lane) {
      words[lane] = base + lane < segment.kept ? segment.load(base + lane) : 0;
    });
    return words;
  };
  bool has_events = false;
  Lanes<uint64_t> next = load(0);
  for (uint32_t base = 0; base < segment.kept; base += kLanes) {
    Lanes<uint64_t> words = next;
    next = load(base + kLanes); // on its way while this chunk is looked at
    has_events |= read_chunk(words, base, segment.kept, sums);
  }
  close(sums);
  return has_events;
}

// An open start in the table: bit 63, its position modulo 2^20, its clock.
PB_DEVICE uint64_t pack_start(uint32_t position, uint64_t clock) {
  uint64_t place = static_cast<uint64_t>(position & 0xfffffu) << kClockBits;
  return static_cast<uint64_t>(1) << 63 | place | clock;
}

PB_DEVICE bool SegmentPairs::read_chunk(const Lanes<uint64_t> &words, uint32_t base, uint32_t kept,
                                        ScopeSums &sums) {
  Lanes<uint64_t> clock, cycles;
  Lanes<uint32_t> scope, key, before;
  Lanes<bool> is_start, is_event, is_unknown;
  for_lanes([&](uint32_t lane) {
    Record record(words[lane], clock_mask_);
    bool is_there = base + lane < kept;
    is_unknown[lane] = is_there && record.scope >= task_.scopes;
    is_event[lane] = is_there && record.is_event && record.scope < task_.scopes;
    bool is_plain = is_there && !is_unknown[lane] && !is_event[lane];
    is_start[lane] = is_plain && !record.is_end;
    clock[lane] = record.clock;
    scope[lane] = record.scope;
    key[lane] = is_plain ? record.scope : kMaxScopes;
  });
  Lanes<uint32_t> peers = match(key);
  for_lanes([&](uint32_t lane) {
    uint32_t older = peers[lane] & ((1u << lane) - 1);
    before[lane] = older != 0 ? highest_bit(older) : kLanes;
  });
  uint32_t starts = ballot(is_start);
  Lanes<uint64_t> clock_before = shuffle(clock, before);
  Lanes<bool> is_paired, is_unpaired;
  for_lanes([&](uint32_t lane) {
    is_paired[lane] = false;
    is_unpaired[lane] = is_unknown[lane];
    if (key[lane] == kMaxScopes)
      return;
    bool follows_start = before[lane] != kLanes && (starts >> before[lane] & 1) != 0;
    uint64_t from = clock_before[lane];
    uint32_t records = lane - before[lane];
    if (before[lane] == kLanes) {
      uint64_t open = sums.open(scope[lane]);
      follows_start = open != 0;
      from = open & ((static_cast<uint64_t>(1) << kClockBits) - 1);
      records = (base + lane - static_cast<uint32_t>(open >> kClockBits)) & 0xfffffu;
    }
    is_paired[lane] = !is_start[lane] && follows_start;
    is_unpaired[lane] = is_start[lane] == follows_start;
    uint64_t between = (clock[lane] - from) & clock_mask_;
    uint64_t cost = static_cast<uint64_t>(records) * task_.record_cost;
    cycles[lane] = between > cost ? between - cost : 0;
  });
  unpaired_ += count_bits(ballot(is_unpaired));
  sync_warp(); // all have read the table
  for_lanes([&](uint32_t lane) {
    bool is_last = key[lane] != kMaxScopes && peers[lane] >> lane == 1;
    if (is_last)
      sums.open(scope[lane]) = is_start[lane] ? pack_start(base + lane, clock[lane]) : 0;
  });
  sync_warp();
  if (uint32_t paired = ballot(is_paired); paired != 0)
    sums.add(scope, cycles, paired);
  return ballot(is_event) != 0;
}

PB_DEVICE void SegmentPairs::close(ScopeSums &sums) {
  for (uint32_t base = 0; base < task_.scopes; base += kLanes) {
    Lanes<bool> is_open;
    for_lanes([&](uint32_t lane) {
      is_open[lane] = base + lane < task_.scopes && sums.open(base + lane) != 0;
      if (is_open[lane])
        sums.open(base + lane) = 0;
    });
    unpaired_ += count_bits(ballot(is_open));
  }
  sync_warp();
}

} // namespace proton::device
