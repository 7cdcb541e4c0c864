// The tracks of a Perfetto file: described when something first stands on them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "record/device.h"
#include "record/timeline_event.h"
#include "support/name.h"
#include "writer/timeline/event_lanes.h"
#include "writer/timeline/perfetto_packets.h"
#include "writer/timeline/trace_encoder.h"

namespace proton {

/// Hashes that are the same in every process.
constexpr uint64_t mixed_bits(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  return bits ^ (bits >> 31);
}

/// FNV-1a.
constexpr uint64_t hash_of_text(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char character : text)
    hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3u;
  return hash;
}

/// Writes packets with descriptors before it returns a track's number (uuid). Numbers are those of
/// one process: files of several may be joined. Parts of one have the same.
class PerfettoTracks {
public:
  PerfettoTracks(const TraceFacts &facts, uint64_t key);

  uint64_t process(PerfettoPackets &out);
  /// The row of what is said of the session itself.
  uint64_t session(PerfettoPackets &out);
  /// Call it once for each lane.
  uint64_t lane(const EventLanes &lanes, uint32_t lane, PerfettoPackets &out);
  uint64_t counter(const EventCounter &counter, PerfettoPackets &out);
  /// Also of a thread that has a track already, by another name.
  void name_thread(const EventThread &thread, PerfettoPackets &out);

private:
  struct Descriptor {
    uint64_t uuid = 0;
    uint64_t parent = 0;
    std::string_view name = {};
    const EventThread *thread = nullptr;
    bool is_counter = false;
    int64_t rank = -1; ///< among its siblings; -1: no order is asked for
    bool orders_children = false;
  };

  uint64_t uuid_of(uint64_t kind, int32_t device, uint64_t number, uint32_t line) const;
  uint64_t uuid_of(const TrackId &track, uint32_t line) const;
  void describe(const Descriptor &track, PerfettoPackets &out);
  uint64_t device(int32_t device, PerfettoPackets &out);
  uint64_t thread(uint64_t number, PerfettoPackets &out);
  uint64_t first_line(const TrackId &track, PerfettoPackets &out);
  std::string track_name(const TrackId &track) const;
  std::string thread_name(uint64_t number) const;

  const TraceFacts facts_;
  const uint64_t key_;
  const int64_t process_id_; ///< as the file tells it
  uint64_t process_uuid_ = 0;
  uint64_t session_uuid_ = 0;
  std::map<int32_t, uint64_t> devices_;
  std::map<uint64_t, EventThread> known_threads_;
  std::map<std::tuple<TrackKind, int32_t, uint64_t>, uint64_t> first_lines_;
  std::map<std::pair<int32_t, const void *>, std::pair<Name, uint64_t>> counters_;
};

} // namespace proton
