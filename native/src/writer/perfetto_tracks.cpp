#include "writer/perfetto_tracks.h"

#include "writer/perfetto_fields.h"
#include "writer/proto_bytes.h"
#include "writer/utf8_text.h"

namespace proton {
namespace {

std::string process_name(const TraceFacts &facts) {
  std::string name;
  if (facts.rank >= 0)
    name = "rank " + std::to_string(facts.rank);
  if (!facts.host.empty())
    name += (name.empty() ? "host " : " host ") + facts.host;
  name += name.empty() ? "" : ": ";
  return name + facts.process_name;
}

// "SM clock (MHz)" has the unit "MHz".
std::string_view unit_of(std::string_view name) {
  size_t open = name.rfind('(');
  if (open == std::string_view::npos || !name.ends_with(')'))
    return {};
  return name.substr(open + 1, name.size() - open - 2);
}

constexpr int64_t kHostRank = 0; // threads stand above devices
constexpr int64_t kDeviceRank = 1'000'000;
constexpr int64_t kGraphRank = 0; // of the children of a device
constexpr int64_t kStreamRank = 1'000'000'000;

} // namespace

PerfettoTracks::PerfettoTracks(const TraceFacts &facts, uint64_t first_uuid, uint32_t sequence)
    : facts_(facts), sequence_(sequence), next_uuid_(first_uuid) {}

void PerfettoTracks::describe(const Descriptor &track, std::string &out) {
  std::string scratch;
  ProtoBytes proto(out);
  size_t packet = proto.open(perfetto::kPacket);
  proto.count(perfetto::kSequence, sequence_);
  size_t descriptor = proto.open(perfetto::kTrackDescriptor);
  proto.count(perfetto::kUuid, track.uuid);
  if (track.parent != 0)
    proto.count(perfetto::kParentUuid, track.parent);
  if (track.thread != nullptr) {
    size_t thread = proto.open(perfetto::kThread);
    proto.integer(perfetto::kPid, facts_.process_id);
    proto.integer(perfetto::kTid, track.thread->thread_id);
    proto.text(perfetto::kThreadName, valid_utf8(track.name, scratch));
    proto.close(thread);
  } else if (track.uuid == process_uuid_) {
    size_t process = proto.open(perfetto::kProcess);
    proto.integer(perfetto::kPid, facts_.process_id);
    proto.text(perfetto::kProcessName, valid_utf8(track.name, scratch));
    proto.close(process);
  } else {
    proto.text(perfetto::kTrackName, valid_utf8(track.name, scratch));
  }
  if (track.is_counter) {
    size_t counter = proto.open(perfetto::kCounter);
    if (!track.unit.empty())
      proto.text(perfetto::kUnitName, valid_utf8(track.unit, scratch));
    proto.close(counter);
  }
  if (track.orders_children)
    proto.count(perfetto::kChildOrdering, perfetto::kByRank);
  if (track.rank >= 0)
    proto.integer(perfetto::kSiblingRank, track.rank);
  proto.close(descriptor);
  proto.close(packet);
}

uint64_t PerfettoTracks::process(std::string &out) {
  if (process_uuid_ == 0) {
    process_uuid_ = new_uuid();
    std::string name = process_name(facts_);
    describe({.uuid = process_uuid_, .name = name, .orders_children = true}, out);
  }
  return process_uuid_;
}

std::string PerfettoTracks::device_name(int32_t device) const {
  std::vector<Device> known = DeviceTable::instance().list();
  auto position = static_cast<size_t>(device);
  if (device < 0 || position >= known.size())
    return "Device " + std::to_string(device);
  std::string kind = known[position].kind == "CPU" ? "CPU device " : "GPU ";
  return kind + std::to_string(known[position].index);
}

uint64_t PerfettoTracks::device(int32_t device, std::string &out) {
  uint64_t &uuid = devices_[device];
  if (uuid == 0) {
    uint64_t parent = process(out);
    uuid = new_uuid();
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

uint64_t PerfettoTracks::thread(uint32_t number, std::string &out) {
  uint64_t parent = process(out);
  uint64_t uuid = new_uuid();
  auto found = known_threads_.find(number);
  std::string name = found == known_threads_.end() ? "" : found->second.name;
  if (name.empty())
    name = "Thread " + std::to_string(number);
  bool is_known = found != known_threads_.end() && found->second.thread_id > 0;
  describe({.uuid = uuid,
            .parent = parent,
            .name = name,
            .thread = is_known ? &found->second : nullptr,
            .rank = kHostRank + number},
           out);
  return uuid;
}

std::string PerfettoTracks::line_name(const LaneId &id) const {
  std::string name;
  if (id.kind == TrackKind::kThread) {
    auto found = known_threads_.find(static_cast<uint32_t>(id.number));
    if (found != known_threads_.end())
      name = found->second.name;
    if (name.empty())
      name = "Thread " + std::to_string(id.number);
  } else {
    name = id.kind == TrackKind::kGraph ? "Graph: Stream " : "Stream ";
    name += std::to_string(id.number);
  }
  return id.line == 0 ? name : name + " (line " + std::to_string(id.line) + ")";
}

uint64_t PerfettoTracks::first_line(const LaneId &id, std::string &out) {
  uint64_t &uuid = first_lines_[{id.kind, {id.device, id.number}}];
  if (uuid != 0)
    return uuid;
  if (id.kind == TrackKind::kThread) {
    uuid = thread(static_cast<uint32_t>(id.number), out);
    return uuid;
  }
  uint64_t parent = device(id.device, out);
  uuid = new_uuid();
  LaneId first = id;
  first.line = 0;
  std::string name = line_name(first);
  int64_t rank = (id.kind == TrackKind::kGraph ? kGraphRank : kStreamRank) +
                 static_cast<int64_t>(id.number % kStreamRank);
  describe({.uuid = uuid, .parent = parent, .name = name, .rank = rank}, out);
  return uuid;
}

uint64_t PerfettoTracks::lane(const EventLanes &lanes, uint32_t lane, std::string &out) {
  if (lane >= lanes_.size())
    lanes_.resize(lanes.size(), 0);
  if (lanes_[lane] != 0)
    return lanes_[lane];
  const LaneId &id = lanes.id(lane);
  uint64_t uuid = first_line(id, out);
  if (id.line != 0) {
    uint64_t parent = uuid;
    uuid = new_uuid();
    std::string name = line_name(id);
    describe({.uuid = uuid, .parent = parent, .name = name}, out);
  }
  lanes_[lane] = uuid;
  return uuid;
}

uint64_t PerfettoTracks::counter(const EventCounter &counter, std::string &out) {
  auto &[name, uuid] = counters_[{counter.device, counter.name.key()}];
  if (uuid == 0) {
    uint64_t parent = counter.device < 0 ? process(out) : device(counter.device, out);
    name = counter.name;
    uuid = new_uuid();
    describe({.uuid = uuid,
              .parent = parent,
              .name = name.text(),
              .unit = unit_of(name.text()),
              .is_counter = true},
             out);
  }
  return uuid;
}

void PerfettoTracks::name_thread(const EventThread &thread, std::string &out) {
  known_threads_[thread.number] = thread;
  auto found = first_lines_.find({TrackKind::kThread, {-1, thread.number}});
  if (found == first_lines_.end() || thread.thread_id <= 0)
    return;
  describe({.uuid = found->second,
            .parent = process_uuid_,
            .name = thread.name,
            .thread = &thread,
            .rank = kHostRank + thread.number},
           out);
}

} // namespace proton
