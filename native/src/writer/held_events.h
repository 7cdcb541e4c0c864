// Events of a timeline that are held back until they can be handed out in the order of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/timeline_event.h"
#include "writer/event_lanes.h"

namespace proton {

struct HeldEvent {
  TimelineEvent event;
  const EventValues *values = nullptr; ///< null: none
  uint32_t lane = 0;                   ///< of the EventLanes
};

/// Is told when slices begin and end, by ascending time; those of one lane nest.
class SliceVisitor {
public:
  virtual ~SliceVisitor() = default;
  virtual void begin(const HeldEvent &held) = 0;
  virtual void end(const HeldEvent &held) = 0;
};

class HeldEvents {
public:
  static constexpr size_t kMaxEvents = 65536; ///< hand out when there are so many

  void add(const EventBatch &batch);
  size_t size() const { return events_.size(); }
  /// Hands out all events and forgets them. Returns how many found no lane and were left out.
  uint64_t hand_out(EventLanes &lanes, SliceVisitor &visitor);

private:
  std::vector<HeldEvent> events_;
  std::vector<EventValues> values_;
  std::vector<uint32_t> order_;
};

} // namespace proton
