#include "writer/timeline/event_lanes.h"

#include <algorithm>

namespace proton {

bool EventLanes::nests(const Lane &lane) {
  TrackKind kind = lane.id.track.kind;
  return kind != TrackKind::kStream && kind != TrackKind::kProcessor;
}

bool EventLanes::has_room(Lane &lane, int64_t &start_ns, int64_t end_ns) {
  while (!lane.open.empty() && lane.open.back().end_ns <= start_ns) {
    lane.closed_ns = std::max(lane.closed_ns, lane.open.back().end_ns);
    lane.open.pop_back();
  }
  if (!lane.open.empty() && (!nests(lane) || lane.open.back().end_ns < end_ns))
    return false;
  if (start_ns >= lane.settled_ns)
    return true;
  return nests(lane) ? nests_with_settled(lane, start_ns, end_ns) : has_gap(lane, start_ns, end_ns);
}

// A settled slice stands earlier in the file: if it begins where the new one ends, viewers would
// close the settled one.
bool EventLanes::has_gap(const Lane &lane, int64_t start_ns, int64_t end_ns) {
  return start_ns >= lane.recent.forgotten_ns() &&
         !lane.recent.any_near(start_ns, end_ns, [&](const SliceTimes &settled) {
           return settled.end_ns > start_ns && settled.start_ns <= end_ns;
         });
}

// A slice that contains settled ones must begin before them, even if the times are equal. Forgotten
// slices are assumed to nest, as those of a thread do.
bool EventLanes::nests_with_settled(const Lane &lane, int64_t &start_ns, int64_t end_ns) {
  int64_t shifted_ns = start_ns;
  bool is_shifted = true;
  while (is_shifted) {
    is_shifted = false;
    bool is_too_far = lane.recent.any_near(shifted_ns, end_ns, [&](const SliceTimes &settled) {
      if (settled.start_ns > shifted_ns || settled.end_ns <= shifted_ns || settled.end_ns >= end_ns)
        return false;
      if (start_ns - settled.start_ns >= kMaxShiftNs)
        return true;
      shifted_ns = settled.start_ns - 1;
      is_shifted = true;
      return false;
    });
    if (is_too_far)
      return false;
  }
  bool ends_inside = lane.recent.any_near(shifted_ns, end_ns, [&](const SliceTimes &settled) {
    return shifted_ns < settled.start_ns && settled.start_ns <= end_ns && end_ns < settled.end_ns;
  });
  bool leaves_others =
      shifted_ns != start_ns && (lane.closed_ns > shifted_ns ||
                                 (!lane.open.empty() && lane.open.back().start_ns > shifted_ns));
  start_ns = shifted_ns;
  return !ends_inside && !leaves_others;
}

uint32_t EventLanes::add_line(const TrackId &track, std::vector<uint32_t> &lines) {
  uint32_t index = size();
  lines.reserve(lines.size() + 1); // what may fail comes first
  lanes_.emplace_back().id = {track, static_cast<uint32_t>(lines.size())};
  lines.push_back(index);
  return index;
}

std::optional<EventLanes::Place> EventLanes::place(const TrackId &track, int64_t start_ns,
                                                   int64_t end_ns) {
  std::vector<uint32_t> &lines = tracks_[track];
  Place place;
  auto found = std::find_if(lines.begin(), lines.end(), [&](uint32_t lane) {
    place.start_ns = start_ns;
    return has_room(lanes_[lane], place.start_ns, end_ns);
  });
  if (found != lines.end()) {
    place.lane = *found;
  } else {
    if (lines.size() >= kMaxLines)
      return std::nullopt;
    place = {add_line(track, lines), start_ns};
  }
  Lane &lane = lanes_[place.lane];
  lane.open.push_back({place.start_ns, end_ns});
  lane.placed.push_back({place.start_ns, end_ns});
  return place;
}

void EventLanes::settle() {
  for (Lane &lane : lanes_) {
    for (const SliceTimes &slice : lane.placed) {
      lane.settled_ns = std::max(lane.settled_ns, slice.end_ns);
      lane.recent.add(slice);
    }
    lane.placed.clear();
    lane.open.clear();
    lane.closed_ns = INT64_MIN;
  }
}

} // namespace proton
