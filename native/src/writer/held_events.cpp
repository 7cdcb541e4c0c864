#include "writer/held_events.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace proton {
namespace {

TrackKind track_kind(EventKind kind) {
  switch (kind) {
  case EventKind::kKernel:
  case EventKind::kCopy:
  case EventKind::kGraph:
    return TrackKind::kStream;
  default:
    return TrackKind::kThread;
  }
}

/// An open slice; what began last ends first where the times are equal.
struct End {
  int64_t at_ns = 0;
  uint32_t position = 0; ///< in the order of the beginnings
  bool operator<(const End &other) const {
    return at_ns != other.at_ns ? at_ns > other.at_ns : position < other.position;
  }
};

} // namespace

void HeldEvents::add(const EventBatch &batch) {
  size_t first_value = values_.size();
  values_.insert(values_.end(), batch.values.begin(), batch.values.end());
  events_.reserve(events_.size() + batch.events.size());
  for (const TimelineEvent &event : batch.events) {
    HeldEvent &held = events_.emplace_back();
    held.event = event;
    held.event.end_ns = std::max(event.start_ns, event.end_ns);
    bool has_values = event.values != 0 && event.values <= batch.values.size();
    held.event.values =
        has_values ? static_cast<uint32_t>(first_value + event.values) : uint32_t{0};
  }
}

uint64_t HeldEvents::hand_out(EventLanes &lanes, SliceVisitor &visitor) {
  order_.resize(events_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(), [this](uint32_t left, uint32_t right) {
    const TimelineEvent &a = events_[left].event;
    const TimelineEvent &b = events_[right].event;
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  uint64_t without_lane = 0;
  std::priority_queue<End> open;
  auto close_one = [&] {
    const HeldEvent &held = events_[order_[open.top().position]];
    open.pop();
    lanes.close(held.lane);
    visitor.end(held);
  };
  for (uint32_t position = 0; position < order_.size(); ++position) {
    HeldEvent &held = events_[order_[position]];
    const TimelineEvent &event = held.event;
    while (!open.empty() && open.top().at_ns <= event.start_ns)
      close_one();
    auto lane =
        lanes.open(track_kind(event.kind), event.device, event.track, event.start_ns, event.end_ns);
    if (!lane) {
      ++without_lane;
      continue;
    }
    held.lane = *lane;
    held.values = event.values == 0 ? nullptr : &values_[event.values - 1];
    visitor.begin(held);
    open.push({event.end_ns, position});
  }
  while (!open.empty())
    close_one();
  lanes.settle();
  events_.clear();
  values_.clear();
  return without_lane;
}

} // namespace proton
