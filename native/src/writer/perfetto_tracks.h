// The tracks of a Perfetto file: described when something first stands on them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/device.h"
#include "record/timeline_event.h"
#include "support/name.h"
#include "writer/event_lanes.h"
#include "writer/trace_encoder.h"

namespace proton {

/// Appends packets with descriptors to `out` before it returns the track's number (uuid). Numbers
/// are those of one process: files of several may be joined.
class PerfettoTracks {
public:
  PerfettoTracks(const TraceFacts &facts, uint64_t first_uuid, uint32_t sequence);

  uint64_t process(std::string &out);
  uint64_t lane(const EventLanes &lanes, uint32_t lane, std::string &out);
  uint64_t counter(const EventCounter &counter, std::string &out);
  /// Also of a thread that has a track already, by another name.
  void name_thread(const EventThread &thread, std::string &out);

private:
  struct Descriptor {
    uint64_t uuid = 0;
    uint64_t parent = 0;
    std::string_view name = {};
    const EventThread *thread = nullptr;
    std::string_view unit = {}; ///< of a counter
    bool is_counter = false;
    int64_t rank = -1; ///< among its siblings; -1: no order is asked for
    bool orders_children = false;
  };

  uint64_t new_uuid() { return next_uuid_++; }
  void describe(const Descriptor &track, std::string &out);
  uint64_t device(int32_t device, std::string &out);
  uint64_t thread(uint32_t number, std::string &out);
  uint64_t first_line(const LaneId &id, std::string &out);
  std::string line_name(const LaneId &id) const;
  std::string device_name(int32_t device) const;

  const TraceFacts facts_;
  const uint32_t sequence_;
  uint64_t next_uuid_;
  uint64_t process_uuid_ = 0;
  std::map<int32_t, uint64_t> devices_;
  std::map<uint32_t, EventThread> known_threads_;
  std::map<std::pair<TrackKind, std::pair<int32_t, uint64_t>>, uint64_t> first_lines_;
  std::vector<uint64_t> lanes_; ///< by lane; 0: not described
  std::map<std::pair<int32_t, const void *>, std::pair<Name, uint64_t>> counters_;
};

} // namespace proton
