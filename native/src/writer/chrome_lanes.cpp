#include "writer/chrome_lanes.h"

#include "writer/json_text.h"
#include "writer/utf8_text.h"

namespace proton {
namespace {

constexpr int64_t kGraphRows = 100'000; // upstream's
constexpr int64_t kStreamRows = 200'000;
constexpr uint64_t kRowsOfKind = 100'000;
constexpr int64_t kDeviceRows = 1'000'000; // those of each further device
constexpr int64_t kMaxDevices = 900;

} // namespace

int32_t ChromeLanes::device_index(int32_t device) {
  auto position = static_cast<size_t>(device);
  if (device >= 0 && position >= devices_.size())
    devices_ = DeviceTable::instance().list();
  if (device < 0)
    return -1;
  return position < devices_.size() ? devices_[position].index : device;
}

int64_t ChromeLanes::first_row(const LaneId &id) {
  if (id.number >= kRowsOfKind)
    return next_line_row_++;
  auto number = static_cast<int64_t>(id.number);
  if (id.kind == TrackKind::kThread)
    return number;
  int32_t device = device_index(id.device);
  if (device < 0 || device >= kMaxDevices)
    return next_line_row_++;
  return device * kDeviceRows + number + (id.kind == TrackKind::kGraph ? kGraphRows : kStreamRows);
}

std::string ChromeLanes::name(const LaneId &id) {
  std::string line = id.line == 0 ? "" : " (line " + std::to_string(id.line) + ")";
  if (id.kind == TrackKind::kThread)
    return "CPU Thread " + std::to_string(id.number) + line;
  int32_t device = device_index(id.device);
  std::string owner = device > 0 ? " " + std::to_string(device) : "";
  std::string stream = "Stream " + std::to_string(id.number) + line;
  if (id.kind == TrackKind::kGraph)
    return "Graph" + owner + ": " + stream;
  return "GPU" + owner + " " + stream;
}

void ChromeLanes::describe(const LaneId &id, int64_t row, int64_t rank, std::string &out) {
  out += ",{\"args\":{\"name\":";
  append_json_text(out, name(id));
  auto thread = threads_.find(id.number);
  if (id.kind == TrackKind::kThread && thread != threads_.end()) {
    out += ",\"thread_id\":";
    append_json_number(out, thread->second.thread_id);
    out += ",\"thread_name\":";
    append_json_text(out, valid_utf8(thread->second.name));
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
  LaneId first = id;
  first.line = 0;
  int64_t rank = first_row(first);
  int64_t row = id.line == 0 ? rank : next_line_row_++;
  describe(id, row, rank, out);
  rows_[lane] = row;
  return row;
}

} // namespace proton
