// Pairs asynchronous events of a program in the order of their clocks, whichever warp wrote them.
// They are rare, so a warp reads the segments once per scope, one lane per segment.
#pragma once

#include "collector/instrumentation/device/program_view.h"
#include "collector/instrumentation/device/scope_sums.h"

namespace proton::device {

/// The events of one scope in one segment, in the order of their clocks.
class EventCursor {
public:
  /// Clocks wrap: `begin` is where they are taken to begin.
  PB_DEVICE void start(const Segment &segment, uint32_t scope, uint64_t clock_mask,
                       uint64_t begin) {
    segment_ = segment;
    scope_ = scope;
    clock_mask_ = clock_mask;
    begin_ = begin;
    is_sorted_ = sorted();
    has_head_ = false;
    next();
  }
  /// Moves to the event after the head.
  PB_DEVICE void next();

  PB_DEVICE bool has_head() const { return has_head_; }
  PB_DEVICE uint64_t key() const { return key_; } ///< clock since `begin`
  PB_DEVICE bool is_end() const { return is_end_; }

private:
  PB_DEVICE bool is_event(const Record &record) const {
    return record.is_event && record.scope == scope_;
  }
  PB_DEVICE uint64_t key_of(const Record &record) const {
    return (record.clock - begin_) & clock_mask_;
  }
  PB_DEVICE bool sorted() const;

  Segment segment_;
  uint32_t scope_;
  uint64_t clock_mask_;
  uint64_t begin_;
  bool is_sorted_;
  bool has_head_;
  bool is_end_;
  uint64_t key_;
  uint32_t position_;
};

PB_DEVICE bool EventCursor::sorted() const {
  uint64_t newest = 0;
  for (uint32_t i = 0; i < segment_.kept; ++i) {
    Record record(segment_.load(i), clock_mask_);
    if (!is_event(record))
      continue;
    if (key_of(record) < newest)
      return false;
    newest = key_of(record);
  }
  return true;
}

PB_DEVICE void EventCursor::next() {
  bool had_head = has_head_;
  uint64_t last_key = key_;
  uint32_t last = position_;
  has_head_ = false;
  for (uint32_t i = had_head && is_sorted_ ? last + 1 : 0; i < segment_.kept; ++i) {
    Record record(segment_.load(i), clock_mask_);
    if (!is_event(record))
      continue;
    uint64_t key = key_of(record);
    bool was_before = had_head && (key < last_key || (key == last_key && i <= last));
    if (was_before || (has_head_ && key >= key_))
      continue;
    has_head_ = true;
    key_ = key;
    position_ = i;
    is_end_ = record.is_end;
    if (is_sorted_)
      return;
  }
}

/// Scopes of a lane's events, a bit each.
struct ScopeSet {
  uint32_t words[kMaxScopes / 32];
};

/// The clock half a turn before the program's first event.
PB_DEVICE uint64_t events_begin(const ReduceTask &task, const ProgramView &program, uint64_t mask,
                                Lanes<ScopeSet> &scopes) {
  Lanes<bool> has_event;
  Lanes<uint64_t> first;
  for_lanes([&](uint32_t lane) {
    has_event[lane] = false;
    first[lane] = 0;
    scopes[lane] = {};
    if (lane >= task.segments)
      return;
    Segment segment = program.lane_segment(lane);
    for (uint32_t i = 0; i < segment.kept; ++i) {
      Record record(segment.load(i), mask);
      if (!record.is_event || record.scope >= task.scopes)
        continue;
      first[lane] = has_event[lane] ? first[lane] : record.clock;
      has_event[lane] = true;
      scopes[lane].words[record.scope / 32] |= 1u << record.scope % 32;
    }
  });
  uint32_t lanes = ballot(has_event);
  return lanes == 0 ? 0 : broadcast(first, lowest_bit(lanes)) - (mask / 2 + 1);
}

/// Returns the number of the scope's records without a partner.
PB_DEVICE uint32_t pair_scope(const ReduceTask &task, Lanes<EventCursor> &cursors, uint32_t scope,
                              ScopeSums &sums) {
  Lanes<bool> is_open, has_head, is_end;
  Lanes<uint64_t> start, head;
  uint32_t unpaired = 0;
  for_lanes([&](uint32_t lane) {
    is_open[lane] = false;
    start[lane] = 0;
  });
  while (true) {
    for_lanes([&](uint32_t lane) {
      has_head[lane] = lane < task.segments && cursors[lane].has_head();
      head[lane] = cursors[lane].key();
      is_end[lane] = cursors[lane].is_end();
    });
    uint32_t heads = ballot(has_head);
    if (heads == 0)
      return unpaired + count_bits(ballot(is_open));
    uint32_t from = lane_of_smallest(head, heads);
    uint64_t key = broadcast(head, from);
    bool ends = broadcast(is_end, from);
    uint32_t open = ballot(is_open);
    uint32_t partner =
        (open >> from & 1) != 0 || !ends || open == 0 ? from : lane_of_smallest(start, open);
    bool is_pair = ends && (open >> partner & 1) != 0;
    unpaired += ends ? (is_pair ? 0 : 1) : open >> from & 1;
    if (is_pair) {
      uint64_t between = key - broadcast(start, partner); // both count from `begin`
      Lanes<uint64_t> cycles;
      Lanes<uint32_t> scopes;
      for_lanes([&](uint32_t lane) {
        cycles[lane] = between > task.record_cost ? between - task.record_cost : 0;
        scopes[lane] = scope;
      });
      sums.add(scopes, cycles, 1);
    }
    for_lanes([&](uint32_t lane) {
      if (lane == partner && is_pair)
        is_open[lane] = false;
      if (lane != from)
        return;
      if (!ends && !is_open[lane]) {
        is_open[lane] = true;
        start[lane] = key;
      }
      cursors[lane].next();
    });
  }
}

/// Adds the program's pairs of events; returns the number of their records without a partner.
PB_DEVICE uint32_t pair_events(const ReduceTask &task, const ProgramView &program,
                               ScopeSums &sums) {
  uint64_t mask = (static_cast<uint64_t>(1) << task.clock_bits) - 1;
  Lanes<ScopeSet> scopes;
  uint64_t begin = events_begin(task, program, mask, scopes);
  uint32_t unpaired = 0;
  for (uint32_t scope = 0; scope < task.scopes; ++scope) {
    Lanes<bool> has_scope;
    for_lanes([&](uint32_t lane) {
      has_scope[lane] = (scopes[lane].words[scope / 32] >> scope % 32 & 1) != 0;
    });
    if (ballot(has_scope) == 0)
      continue;
    Lanes<EventCursor> cursors;
    for_lanes([&](uint32_t lane) {
      cursors[lane] = {};
      if (lane < task.segments)
        cursors[lane].start(program.lane_segment(lane), scope, mask, begin);
    });
    unpaired += pair_scope(task, cursors, scope, sums);
  }
  return unpaired;
}

} // namespace proton::device
