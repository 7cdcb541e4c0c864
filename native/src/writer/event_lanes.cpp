#include "writer/event_lanes.h"

#include <algorithm>

namespace proton {

std::vector<uint32_t> &EventLanes::track(TrackKind kind, int32_t device, uint32_t number) {
  Key key{uint64_t{static_cast<uint32_t>(device)} << 32 | number, kind};
  return tracks_[key];
}

bool EventLanes::has_room(const Lane &lane, int64_t start_ns, int64_t end_ns) {
  if (lane.id.kind == TrackKind::kStream)
    return lane.free_from_ns <= start_ns;
  return lane.open_ends.empty() || end_ns <= lane.open_ends.back();
}

std::optional<uint32_t> EventLanes::open(TrackKind kind, int32_t device, uint32_t number,
                                         int64_t start_ns, int64_t end_ns) {
  std::vector<uint32_t> &lines = track(kind, device, number);
  auto found = std::find_if(lines.begin(), lines.end(), [&](uint32_t lane) {
    return has_room(lanes_[lane], start_ns, end_ns);
  });
  uint32_t index = 0;
  if (found != lines.end()) {
    index = *found;
  } else {
    if (lines.size() >= kMaxLines)
      return std::nullopt;
    index = size();
    lines.push_back(index);
    try {
      lanes_.push_back(
          {{kind, device, number, static_cast<uint32_t>(lines.size() - 1)}, {}, {}, {}});
    } catch (...) {
      lines.pop_back();
      throw;
    }
  }
  Lane &lane = lanes_[index];
  lane.open_ends.push_back(end_ns);
  lane.free_from_ns = std::max(lane.free_from_ns, end_ns);
  return index;
}

void EventLanes::settle() {
  for (Lane &lane : lanes_)
    lane.settled_ns = lane.free_from_ns;
}

} // namespace proton
