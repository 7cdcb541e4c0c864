#include "writer/timeline/chrome_lanes.h"

#include "writer/bytes/json_text.h"

namespace proton {
namespace {

constexpr int64_t kGraphRows = 100'000; // upstream's
constexpr int64_t kStreamRows = 200'000;
constexpr uint64_t kRowsOfKind = 100'000;
constexpr int64_t kDeviceRows = 1'000'000; // those of each further device
constexpr int64_t kMaxDevices = 900;

} // namespace

int32_t ChromeLanes::device_index(int32_t device) {
  if (device < 0)
    return -1;
  auto position = static_cast<size_t>(device);
  if (position >= devices_.size())
    devices_ = DeviceTable::instance().list();
  return position < devices_.size() ? devices_[position].index : device;
}

/// -1: upstream has none.
int64_t ChromeLanes::upstream_row(const TrackId &track) {
  if (track.number >= kRowsOfKind)
    return -1;
  auto number = static_cast<int64_t>(track.number);
  if (track.kind == TrackKind::kThread)
    return number;
  int32_t device = device_index(track.device);
  if (device < 0 || device >= kMaxDevices)
    return -1;
  if (track.kind == TrackKind::kGraph)
    return device * kDeviceRows + kGraphRows + number;
  return track.kind == TrackKind::kStream ? device * kDeviceRows + kStreamRows + number : -1;
}

int64_t ChromeLanes::first_row(const TrackId &track) {
  auto [found, is_new] = first_rows_.try_emplace(track, 0);
  if (is_new) {
    int64_t row = upstream_row(track);
    found->second = row >= 0 ? row : next_row_++;
  }
  return found->second;
}

std::string ChromeLanes::name(const TrackId &track) {
  std::string number = std::to_string(track.number);
  if (track.kind == TrackKind::kThread)
    return "CPU Thread " + number;
  int32_t device = device_index(track.device);
  std::string owner = device > 0 ? " " + std::to_string(device) : "";
  switch (track.kind) {
  case TrackKind::kGraph:
    return "Graph" + owner + ": Stream " + number;
  case TrackKind::kProcessor:
    return "GPU" + owner + " SM " + number;
  case TrackKind::kWarp:
    return "GPU" + owner + " SM " + std::to_string(processor_of(track.number)) + " warp " +
           std::to_string(warp_of(track.number));
  default:
    return "GPU" + owner + " Stream " + number;
  }
}

void ChromeLanes::describe(const LaneId &id, int64_t row, int64_t rank, std::string &out) {
  std::string line = id.line == 0 ? "" : " (line " + std::to_string(id.line) + ")";
  out += ",{\"args\":{\"name\":";
  append_json_text(out, name(id.track) + line);
  auto thread = threads_.find(id.track.number);
  bool has_thread = thread != threads_.end() && !upstream_shape_;
  if (id.track.kind == TrackKind::kThread && has_thread) {
    out += ",\"thread_id\":";
    append_json_number(out, thread->second.thread_id);
    out += ",\"thread_name\":";
    append_quoted(out, thread->second.name);
  }
  out += "},\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":";
  append_json_number(out, row);
  out += "},{\"args\":{\"sort_index\":";
  append_json_number(out, rank);
  out += "},\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":0,\"tid\":";
  append_json_number(out, row);
  out += '}';
}

int64_t ChromeLanes::row(const EventLanes &lanes, uint32_t lane, std::string &out) {
  if (lane >= rows_.size())
    rows_.resize(lanes.size(), -1);
  if (rows_[lane] >= 0)
    return rows_[lane];
  const LaneId &id = lanes.id(lane);
  int64_t rank = first_row(id.track);
  int64_t row = id.line == 0 || upstream_shape_ ? rank : next_row_++;
  if (!upstream_shape_)
    describe(id, row, rank, out);
  else if (named_rows_.insert(row).second)
    describe({id.track, 0}, row, rank, out);
  rows_[lane] = row;
  return row;
}

} // namespace proton
