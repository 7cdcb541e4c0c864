// Rows of a file in Chrome's trace format: numbers and names as upstream gives them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/device.h"
#include "record/timeline_event.h"
#include "writer/events/event_lanes.h"

namespace proton {

class ChromeLanes {
public:
  void add_thread(const EventThread &thread) { threads_[thread.number] = thread; }
  /// Rows have no further lines beside them and upstream's names alone; before the first `row`.
  void set_upstream_shape(bool upstream_shape) { upstream_shape_ = upstream_shape; }
  /// The row (tid) of a lane. Appends the events that name it to `out`, each with a comma before
  /// it, when it is new.
  int64_t row(const EventLanes &lanes, uint32_t lane, std::string &out);
  /// Index among the devices of its kind; -1: none.
  int32_t device_index(int32_t device);

private:
  int64_t first_row(const TrackId &track);
  int64_t upstream_row(const TrackId &track);
  void describe(const LaneId &id, int64_t row, int64_t rank, std::string &out);
  std::string name(const TrackId &track);

  struct TrackHash {
    size_t operator()(const TrackId &track) const noexcept { return hash_of(track); }
  };

  bool upstream_shape_ = false;
  std::vector<int64_t> rows_; ///< by lane; -1: none yet
  std::unordered_map<TrackId, int64_t, TrackHash> first_rows_;
  std::set<int64_t> named_rows_; ///< in upstream's shape
  std::map<uint64_t, EventThread> threads_;
  std::vector<Device> devices_;
  int64_t next_row_ = 1'000'000'000; ///< of what upstream has no rows for
};

} // namespace proton
