// Events of a timeline that wait until they can be handed out in the order of time.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "record/timeline_event.h"
#include "writer/events/event_lanes.h"
#include "writer/events/event_nodes.h"

namespace proton {

struct HeldEvent {
  TimelineEvent event; ///< its `values` do not point into the batch
  TrackId track;
  uint32_t lane = 0;                   ///< of the EventLanes
  const EventValues *values = nullptr; ///< may be null
  uint64_t link = 0;                   ///< joins the halves of what ended on another track
  bool is_link_end = false;            ///< the second half
};

/// Receives begins and ends of slices: lane by lane, nested, and by ascending time in each lane.
class SliceVisitor {
public:
  virtual ~SliceVisitor() = default;
  virtual void begin(const HeldEvent &held) = 0;
  virtual void end(const HeldEvent &held) = 0;
};

class HeldEvents {
public:
  static constexpr size_t kMaxEvents = 65536; ///< hand out at this number

  explicit HeldEvents(const EventNodes &nodes) : nodes_(nodes) {}
  void add(const EventBatch &batch);
  /// `held.values` is copied.
  void add(const HeldEvent &held);
  size_t size() const { return events_.size(); }
  /// In the order in which they were added.
  const std::vector<HeldEvent> &events() const { return events_; }
  /// Hands out all events and forgets them. Returns how many found no lane and were left out.
  uint64_t hand_out(EventLanes &lanes, SliceVisitor &visitor);

private:
  void sort();

  const EventNodes &nodes_;
  std::vector<HeldEvent> events_;
  std::deque<EventValues> values_;
  std::vector<uint32_t> order_;
  std::vector<std::vector<uint32_t>> by_lane_;
};

} // namespace proton
