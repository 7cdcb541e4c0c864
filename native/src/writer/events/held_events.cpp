#include "writer/events/held_events.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace proton {
namespace {

TrackKind track_kind(EventKind kind) {
  bool is_work =
      kind == EventKind::kKernel || kind == EventKind::kCopy || kind == EventKind::kGraph;
  return is_work ? TrackKind::kStream : TrackKind::kThread;
}

} // namespace

void HeldEvents::add(const EventBatch &batch) {
  events_.reserve(events_.size() + batch.events.size());
  for (const TimelineEvent &event : batch.events) {
    HeldEvent held;
    held.event = event;
    held.track = {track_kind(event.kind), event.device, event.track};
    if (event.values != 0 && event.values <= batch.values.size())
      held.values = &batch.values[event.values - 1];
    add(held);
  }
}

void HeldEvents::add(const HeldEvent &held) {
  events_.push_back(held);
  HeldEvent &added = events_.back();
  added.event.end_ns = std::max(held.event.start_ns, held.event.end_ns);
  if (held.values != nullptr)
    added.values = &values_.emplace_back(*held.values);
}

// The outer one first: if two began together, the longer; if both times are equal, the one with the
// shorter call path, or the one that ended and came later.
void HeldEvents::sort() {
  order_.resize(events_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  auto is_before = [this](uint32_t left, uint32_t right) {
    const TimelineEvent &a = events_[left].event;
    const TimelineEvent &b = events_[right].event;
    if (a.start_ns != b.start_ns)
      return a.start_ns < b.start_ns;
    return std::tuple(b.end_ns, nodes_.depth(a.node), right) <
           std::tuple(a.end_ns, nodes_.depth(b.node), left);
  };
  if (!std::is_sorted(order_.begin(), order_.end(), is_before)) // as scopes in a row are
    std::sort(order_.begin(), order_.end(), is_before);
}

uint64_t HeldEvents::hand_out(EventLanes &lanes, SliceVisitor &visitor) {
  sort();
  uint64_t without_lane = 0;
  for (uint32_t position : order_) {
    HeldEvent &held = events_[position];
    auto place = lanes.place(held.track, held.event.start_ns, held.event.end_ns);
    if (!place) {
      ++without_lane;
      continue;
    }
    held.lane = place->lane;
    held.event.start_ns = place->start_ns;
    if (held.lane >= by_lane_.size())
      by_lane_.resize(lanes.size());
    by_lane_[held.lane].push_back(position);
  }
  lanes.settle();
  std::vector<const HeldEvent *> open;
  auto close_until = [&](int64_t at_ns) {
    while (!open.empty() && open.back()->event.end_ns <= at_ns) {
      visitor.end(*open.back());
      open.pop_back();
    }
  };
  for (std::vector<uint32_t> &positions : by_lane_) {
    for (uint32_t position : positions) {
      const HeldEvent &held = events_[position];
      close_until(held.event.start_ns);
      visitor.begin(held);
      open.push_back(&held);
    }
    close_until(INT64_MAX);
    positions.clear();
  }
  events_.clear();
  values_.clear();
  return without_lane;
}

} // namespace proton
