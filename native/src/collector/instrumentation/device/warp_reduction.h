// A warp's part of the reduction of a launch's records to totals. Rules are those of
// host_decoder.h, and tests hold both against each other.
//
// A warp reads segments in chunks of 32 records. Partners within a chunk find each other by the
// lanes of their scope; what a chunk leaves open waits in a table.
#pragma once

#include "collector/instrumentation/device/event_pairs.h"
#include "collector/instrumentation/device/program_view.h"
#include "collector/instrumentation/device/scope_sums.h"

namespace proton::device {

/// Four steps, between which all warps of the block meet.
class WarpReduction {
public:
  struct Place {
    uint32_t block, blocks, warp, warps;
  };
  PB_DEVICE WarpReduction(const ReduceTask &task, unsigned char *shared, const Place &place)
      : task_(task), sums_(task, shared, place.warps, place.warp), place_(place), counters_{},
        side_by_side_(task.segments < place.warps ? place.warps / task.segments : 1),
        clock_mask_((static_cast<uint64_t>(1) << task.clock_bits) - 1) {}

  PB_DEVICE void clear() { sums_.clear(); }
  PB_DEVICE void read();
  /// Pairs events, which another warp may have ended, and clears what shows that programs ran.
  PB_DEVICE void finish();
  PB_DEVICE void flush();

private:
  PB_DEVICE bool is_kept(uint64_t index) const {
    bool is_kept = task_.ranges == 0;
    for (uint32_t i = 0; i < task_.ranges; ++i)
      is_kept |= index >= task_.first[i] && index <= task_.last[i];
    return is_kept;
  }
  PB_DEVICE void read_program(uint64_t index, uint32_t first_segment);
  PB_DEVICE void count_program(const ProgramView &program);
  PB_DEVICE bool read_segment(const Segment &segment);
  PB_DEVICE bool read_chunk(const Lanes<uint64_t> &words, uint32_t base, uint32_t kept);
  PB_DEVICE void close_segment();

  const ReduceTask &task_;
  ScopeSums sums_;
  Place place_;
  Counters counters_;
  uint32_t side_by_side_; ///< programs that the block's warps read at a time
  uint64_t clock_mask_;
};

PB_DEVICE void WarpReduction::read() {
  bool shares = task_.segments < place_.warps;
  uint32_t beside = shares ? place_.warp / task_.segments : 0;
  uint32_t first_segment = shares ? place_.warp % task_.segments : place_.warp;
  uint64_t step = static_cast<uint64_t>(place_.blocks) * side_by_side_;
  uint64_t index = static_cast<uint64_t>(place_.block) * side_by_side_ + beside;
  for (; beside < side_by_side_ && index < task_.programs; index += step)
    read_program(index, first_segment);
}

PB_DEVICE void WarpReduction::read_program(uint64_t index, uint32_t first_segment) {
  if (first_segment >= task_.segments || !is_kept(index))
    return;
  ProgramView program(task_, index);
  if (first_segment == 0)
    count_program(program);
  if (!program.is_written())
    return;
  bool has_events = false;
  for (uint32_t i = first_segment; i < task_.segments; i += place_.warps)
    has_events |= read_segment(program.segment(i));
  for_lanes([&](uint32_t lane) {
    if (lane == 0 && has_events)
      ProgramView::mark_events(task_, index);
  });
}

PB_DEVICE void WarpReduction::count_program(const ProgramView &program) {
  if (!program.is_written()) {
    ++(program.is_skipped() ? counters_.skipped_programs : counters_.corrupt_programs);
    return;
  }
  uint32_t lossy = program.lossy();
  ++counters_.programs;
  counters_.lossy_programs += lossy != 0 ? 1 : 0;
  counters_.lossy_warps += count_bits(lossy);
  Lanes<uint64_t> kept, lost;
  for_lanes([&](uint32_t lane) {
    kept[lane] = lane < task_.segments ? program.lane_segment(lane).kept : 0;
    lost[lane] = lane < task_.segments ? program.lane_written(lane) - kept[lane] : 0;
  });
  counters_.records += sum_of(kept, kAllLanes);
  counters_.lost_records += lossy != 0 ? sum_of(lost, kAllLanes) : 0;
}

/// Whether it holds records of events.
PB_DEVICE bool WarpReduction::read_segment(const Segment &segment) {
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
    has_events |= read_chunk(words, base, segment.kept);
  }
  close_segment();
  return has_events;
}

// An open start in the table: bit 63, its position modulo 2^20, its clock.
PB_DEVICE uint64_t pack_start(uint32_t position, uint64_t clock) {
  uint64_t place = static_cast<uint64_t>(position & 0xfffffu) << kClockBits;
  return static_cast<uint64_t>(1) << 63 | place | clock;
}

PB_DEVICE bool WarpReduction::read_chunk(const Lanes<uint64_t> &words, uint32_t base,
                                         uint32_t kept) {
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
      uint64_t open = sums_.open(scope[lane]);
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
  counters_.unpaired_records += count_bits(ballot(is_unpaired));
  sync_warp(); // all have read the table
  for_lanes([&](uint32_t lane) {
    bool is_last = key[lane] != kMaxScopes && peers[lane] >> lane == 1;
    if (is_last)
      sums_.open(scope[lane]) = is_start[lane] ? pack_start(base + lane, clock[lane]) : 0;
  });
  sync_warp();
  if (uint32_t paired = ballot(is_paired); paired != 0)
    sums_.add(scope, cycles, paired);
  return ballot(is_event) != 0;
}

PB_DEVICE void WarpReduction::close_segment() {
  for (uint32_t base = 0; base < task_.scopes; base += kLanes) {
    Lanes<bool> is_open;
    for_lanes([&](uint32_t lane) {
      is_open[lane] = base + lane < task_.scopes && sums_.open(base + lane) != 0;
      if (is_open[lane])
        sums_.open(base + lane) = 0;
    });
    counters_.unpaired_records += count_bits(ballot(is_open));
  }
  sync_warp();
}

PB_DEVICE void WarpReduction::finish() {
  // The block's programs again, a lane each.
  uint64_t tile = static_cast<uint64_t>(place_.blocks) * side_by_side_;
  uint64_t first = static_cast<uint64_t>(place_.block) * side_by_side_;
  auto program_at = [&](uint64_t turn) {
    auto small = static_cast<uint32_t>(turn); // below the programs; 64 bits divide slowly
    return small / side_by_side_ * tile + first + small % side_by_side_;
  };
  uint64_t threads = static_cast<uint64_t>(place_.warps) * kLanes;
  for (uint64_t base = place_.warp * kLanes; program_at(base) < task_.programs; base += threads) {
    Lanes<bool> has_events;
    for_lanes([&](uint32_t lane) {
      uint64_t index = program_at(base + lane);
      has_events[lane] =
          index < task_.programs && is_kept(index) && ProgramView::has_events(task_, index);
    });
    for (uint32_t rest = ballot(has_events); rest != 0; rest &= rest - 1) {
      ProgramView program(task_, program_at(base + lowest_bit(rest)));
      if (program.is_written())
        counters_.unpaired_records += pair_events(task_, program, sums_);
    }
    for_lanes([&](uint32_t lane) {
      uint64_t index = program_at(base + lane);
      if (index < task_.programs)
        ProgramView::clear(task_, index);
    });
  }
  sums_.add(counters_);
}

PB_DEVICE void WarpReduction::flush() {
  sums_.flush();
  for_lanes([&](uint32_t lane) {
    if (place_.block == 0 && place_.warp == 0 && lane == 0)
      atomic_add(&reinterpret_cast<KernelTotals *>(task_.totals)->launches, uint64_t{1});
  });
}

} // namespace proton::device
