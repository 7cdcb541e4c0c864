#include "collector/instrumentation/decoder/scope_pairs.h"

#include <algorithm>

namespace proton {

void WarpPairs::begin(uint32_t warp) {
  warp_ = warp;
  unpaired_ = 0;
  open_count_ = 0;
  starts_.fill({});
}

std::optional<ScopeInstance> WarpPairs::add(const RawRecord &record, uint32_t position) {
  Start &start = starts_[record.scope];
  if (!record.is_end) {
    unpaired_ += start.is_open ? 1 : 0;
    open_count_ += start.is_open ? 0 : 1;
    start = {true, position, record.clock};
    return std::nullopt;
  }
  if (!start.is_open) {
    ++unpaired_;
    return std::nullopt;
  }
  start.is_open = false;
  --open_count_;
  ScopeInstance instance;
  instance.scope = record.scope;
  instance.warp = warp_;
  instance.end_warp = warp_;
  instance.start_clock = start.clock;
  instance.end_clock = record.clock;
  instance.cycles = rules_.cycles(start.clock, record.clock, position - start.position);
  instance.shift_cycles = rules_.cost(start.position);
  return instance;
}

void AsyncPairs::sort() {
  if (entries_.empty())
    return;
  // Clocks wrap: half a turn before any of them is a safe place to begin.
  uint64_t begin = entries_.front().record.clock - (rules_.clock_mask / 2 + 1);
  std::stable_sort(entries_.begin(), entries_.end(), [&](const Entry &left, const Entry &right) {
    return ((left.record.clock - begin) & rules_.clock_mask) <
           ((right.record.clock - begin) & rules_.clock_mask);
  });
}

std::optional<ScopeInstance> AsyncPairs::pair(const Entry &entry, uint64_t &unpaired) {
  auto own = std::find_if(open_.begin(), open_.end(), [&](const Entry &start) {
    return start.record.scope == entry.record.scope && start.warp == entry.warp;
  });
  if (!entry.record.is_end) {
    if (own == open_.end())
      open_.push_back(entry);
    else
      ++unpaired;
    return std::nullopt;
  }
  if (own == open_.end())
    own = std::find_if(open_.begin(), open_.end(), [&](const Entry &start) {
      return start.record.scope == entry.record.scope;
    });
  if (own == open_.end()) {
    ++unpaired;
    return std::nullopt;
  }
  ScopeInstance instance;
  instance.scope = entry.record.scope;
  instance.warp = own->warp;
  instance.end_warp = entry.warp;
  instance.is_async = true;
  instance.start_clock = own->record.clock;
  instance.end_clock = entry.record.clock;
  instance.cycles = rules_.cycles(own->record.clock, entry.record.clock, 1);
  instance.shift_cycles = rules_.cost(own->position);
  open_.erase(own);
  return instance;
}

} // namespace proton
