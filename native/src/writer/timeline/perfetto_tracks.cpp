#include "writer/timeline/perfetto_tracks.h"

#include "writer/bytes/utf8_text.h"

namespace proton {
namespace {

using namespace perfetto;

std::string process_name(const TraceFacts &facts) {
  std::string name;
  if (facts.rank >= 0)
    name = "rank " + std::to_string(facts.rank);
  if (!facts.host.empty())
    name += (name.empty() ? "host " : " host ") + facts.host;
  name += name.empty() ? "" : ": ";
  return name + facts.process_name;
}

std::string device_name(int32_t device) {
  std::vector<Device> known = DeviceTable::instance().list();
  auto position = static_cast<size_t>(device);
  if (device < 0 || position >= known.size())
    return "Device " + std::to_string(device);
  std::string kind = known[position].kind == "CPU" ? "CPU device " : "GPU ";
  return kind + std::to_string(known[position].index);
}

// Kinds of tracks, as their numbers are made of.
enum : uint64_t { kProcesses, kDevices, kCounters, kSessions, kLanes };

constexpr int64_t kMostProcesses = 10'000'000; // of a host; Linux has fewer
constexpr int64_t kMostRanks = 200;            // for whom such a number fits

// Processes of several hosts may have the same number, and viewers take what has one number for one
// process: so that of a rank has the rank in front, 30004711 for 4711 of rank 3. Rank 0 keeps its
// own, which most files are of.
int64_t shown_process_id(const TraceFacts &facts) {
  if (facts.rank < 0)
    return facts.process_id;
  if (facts.rank < kMostRanks)
    return facts.rank * kMostProcesses + facts.process_id % kMostProcesses;
  return kMostProcesses * kMostRanks + facts.rank;
}

// Ranks of tracks among their siblings. Threads stand above devices; of a device graphs above
// streams above processors. Counters stand below all that ran.
constexpr int64_t kDeviceRank = 1'000'000;
constexpr int64_t kStreamRank = 1'000'000;
constexpr int64_t kProcessorRank = 2'000'000;
constexpr int64_t kCounterRank = 3'000'000;
constexpr int64_t kSessionRank = 4'000'000;
constexpr int64_t kLineRank = 1'000'000;
constexpr uint64_t kRanksOfKind = 1'000'000;

int64_t rank_of(const TrackId &track) {
  auto number = static_cast<int64_t>(track.number % kRanksOfKind);
  switch (track.kind) {
  case TrackKind::kStream:
    return kStreamRank + number;
  case TrackKind::kProcessor:
    return kProcessorRank + number;
  case TrackKind::kWarp:
    return static_cast<int64_t>(warp_of(track.number));
  default:
    return number;
  }
}

} // namespace

PerfettoTracks::PerfettoTracks(const TraceFacts &facts, uint64_t key)
    : facts_(facts), key_(key), process_id_(shown_process_id(facts)) {}

uint64_t PerfettoTracks::uuid_of(uint64_t kind, int32_t device, uint64_t number,
                                 uint32_t line) const {
  uint64_t place = uint64_t{static_cast<uint32_t>(device)} << 32 | line;
  uint64_t hash = mixed_bits(mixed_bits(mixed_bits(key_ + kind) ^ place) ^ number);
  return hash >> 1 | 1; // 0 means none
}

uint64_t PerfettoTracks::uuid_of(const TrackId &track, uint32_t line) const {
  return uuid_of(kLanes + static_cast<uint64_t>(track.kind), track.device, track.number, line);
}

void PerfettoTracks::describe(const Descriptor &track, PerfettoPackets &out) {
  std::string scratch;
  std::string fields;
  ProtoBytes proto(fields);
  std::string_view name = valid_utf8(track.name, scratch);
  proto.count(kUuid, track.uuid);
  if (track.parent != 0)
    proto.count(kParentUuid, track.parent);
  if (track.thread != nullptr) {
    size_t thread = proto.open(kThread);
    proto.integer(kPid, process_id_);
    proto.integer(kTid, track.thread->thread_id);
    proto.text(kThreadName, name);
    proto.close(thread);
  } else if (track.uuid == process_uuid_) {
    size_t process = proto.open(kProcess);
    proto.integer(kPid, process_id_);
    proto.text(kProcessName, name);
    proto.close(process);
  } else {
    proto.text(kTrackName, name);
  }
  if (track.is_counter) {
    std::string_view unit = quantity_and_unit(name).second;
    size_t counter = proto.open(kCounter);
    if (!unit.empty())
      proto.text(kUnitName, unit);
    proto.close(counter);
  }
  if (track.orders_children)
    proto.count(kChildOrdering, kByRank);
  if (track.rank >= 0)
    proto.integer(kSiblingRank, track.rank);
  out.message(kTrackDescriptor, fields);
}

uint64_t PerfettoTracks::process(PerfettoPackets &out) {
  if (process_uuid_ == 0) {
    process_uuid_ = uuid_of(kProcesses, -1, 0, 0);
    std::string name = process_name(facts_);
    describe({.uuid = process_uuid_, .name = name, .orders_children = true}, out);
  }
  return process_uuid_;
}

uint64_t PerfettoTracks::session(PerfettoPackets &out) {
  if (session_uuid_ == 0) {
    uint64_t parent = process(out);
    session_uuid_ = uuid_of(kSessions, -1, 0, 0);
    describe({.uuid = session_uuid_, .parent = parent, .name = "session", .rank = kSessionRank},
             out);
  }
  return session_uuid_;
}

uint64_t PerfettoTracks::device(int32_t device, PerfettoPackets &out) {
  uint64_t &uuid = devices_[device];
  if (uuid == 0) {
    uint64_t parent = process(out);
    uuid = uuid_of(kDevices, device, 0, 0);
    std::string name = device_name(device);
    describe({.uuid = uuid,
              .parent = parent,
              .name = name,
              .rank = kDeviceRank + device,
              .orders_children = true},
             out);
  }
  return uuid;
}

std::string PerfettoTracks::thread_name(uint64_t number) const {
  auto found = known_threads_.find(number);
  bool has_name = found != known_threads_.end() && !found->second.name.empty();
  return has_name ? found->second.name : "Thread " + std::to_string(number);
}

uint64_t PerfettoTracks::thread(uint64_t number, PerfettoPackets &out) {
  uint64_t parent = process(out);
  uint64_t uuid = uuid_of({TrackKind::kThread, -1, number}, 0);
  auto found = known_threads_.find(number);
  bool has_id = found != known_threads_.end() && found->second.thread_id > 0;
  std::string name = thread_name(number);
  describe({.uuid = uuid,
            .parent = parent,
            .name = name,
            .thread = has_id ? &found->second : nullptr,
            .rank = rank_of({TrackKind::kThread, -1, number})},
           out);
  return uuid;
}

std::string PerfettoTracks::track_name(const TrackId &track) const {
  switch (track.kind) {
  case TrackKind::kThread:
    return thread_name(track.number);
  case TrackKind::kStream:
    return "Stream " + std::to_string(track.number);
  case TrackKind::kGraph:
    return "Graph: Stream " + std::to_string(track.number);
  case TrackKind::kProcessor:
    return "SM " + std::to_string(track.number);
  case TrackKind::kWarp:
    break;
  }
  return "SM " + std::to_string(processor_of(track.number)) + " warp " +
         std::to_string(warp_of(track.number));
}

uint64_t PerfettoTracks::first_line(const TrackId &track, PerfettoPackets &out) {
  uint64_t &uuid = first_lines_[{track.kind, track.device, track.number}];
  if (uuid != 0)
    return uuid;
  if (track.kind == TrackKind::kThread) {
    uuid = thread(track.number, out);
    return uuid;
  }
  uint64_t parent =
      track.kind == TrackKind::kWarp
          ? first_line({TrackKind::kProcessor, track.device, processor_of(track.number)}, out)
          : device(track.device, out);
  uuid = uuid_of(track, 0);
  std::string name = track_name(track);
  describe({.uuid = uuid,
            .parent = parent,
            .name = name,
            .rank = rank_of(track),
            .orders_children = true},
           out);
  return uuid;
}

uint64_t PerfettoTracks::lane(const EventLanes &lanes, uint32_t lane, PerfettoPackets &out) {
  const LaneId &id = lanes.id(lane);
  uint64_t uuid = first_line(id.track, out);
  if (id.line == 0)
    return uuid;
  uint64_t parent = uuid;
  uuid = uuid_of(id.track, id.line);
  std::string name = track_name(id.track) + " (line " + std::to_string(id.line) + ")";
  // Below the warps that a processor's row may hold too.
  int64_t rank = kLineRank + int64_t{id.line};
  describe({.uuid = uuid, .parent = parent, .name = name, .rank = rank}, out);
  return uuid;
}

uint64_t PerfettoTracks::counter(const EventCounter &counter, PerfettoPackets &out) {
  auto &[name, uuid] = counters_[{counter.device, counter.name.key()}];
  if (uuid == 0) {
    uint64_t parent = counter.device < 0 ? process(out) : device(counter.device, out);
    name = counter.name; // keeps the key in use
    uuid = uuid_of(kCounters, counter.device, hash_of_text(name.text()), 0);
    describe({.uuid = uuid,
              .parent = parent,
              .name = name.text(),
              .is_counter = true,
              .rank = kCounterRank},
             out);
  }
  return uuid;
}

void PerfettoTracks::name_thread(const EventThread &thread, PerfettoPackets &out) {
  known_threads_[thread.number] = thread;
  auto found = first_lines_.find({TrackKind::kThread, -1, thread.number});
  if (found == first_lines_.end() || thread.thread_id <= 0)
    return;
  std::string name = thread_name(thread.number);
  describe({.uuid = found->second,
            .parent = process_uuid_,
            .name = name,
            .thread = &thread,
            .rank = rank_of({TrackKind::kThread, -1, thread.number})},
           out);
}

} // namespace proton
