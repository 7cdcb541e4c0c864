// A warp's part of the reduction of a launch's records to totals, by the rules of host_decoder.h.
// Tests compare both.
#pragma once

#include "collector/instrumentation/device/event_pairs.h"
#include "collector/instrumentation/device/program_view.h"
#include "collector/instrumentation/device/scope_sums.h"
#include "collector/instrumentation/device/segment_pairs.h"

namespace proton::device {

/// Four steps, between which all warps of the block meet.
class WarpReduction {
public:
  struct Place {
    uint32_t block, blocks, warp, warps;
  };
  PB_DEVICE WarpReduction(const ReduceTask &task, unsigned char *shared, const Place &place)
      : task_(task), sums_(task, shared, place.warps, place.warp), place_(place), pairs_(task),
        counters_{}, side_by_side_(task.segments < place.warps ? place.warps / task.segments : 1) {}

  PB_DEVICE void clear() { sums_.clear(); }
  PB_DEVICE void read();
  /// Pairs events, which another warp may have ended, and clears the marks of programs that ran.
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

  const ReduceTask &task_;
  ScopeSums sums_;
  Place place_;
  SegmentPairs pairs_;
  Counters counters_;
  uint32_t side_by_side_; ///< programs that the block's warps read at a time
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
    has_events |= pairs_.read(program.segment(i), sums_);
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
  counters_.unpaired_records += pairs_.unpaired();
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
