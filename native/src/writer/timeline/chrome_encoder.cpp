// Timelines in Chrome's trace format, in the form of upstream Proton 3.9 with more arguments.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/device.h"
#include "record/timeline_event.h"
#include "writer/bytes/json_text.h"
#include "writer/timeline/event_encoder.h"
#include "writer/timeline/scope_flows.h"

namespace proton {
namespace {

constexpr int64_t kGraphRows = 100'000; // upstream's
constexpr int64_t kStreamRows = 200'000;
constexpr uint64_t kRowsOfKind = 100'000;
constexpr int64_t kDeviceRows = 1'000'000; // those of each further device
constexpr int64_t kMaxDevices = 900;
constexpr uint64_t kNsPerUs = 1000;
// Numbers of arrows are that of their launch and, above it, which of its arrows they are. Viewers
// keep 53 bits.
constexpr uint64_t kFirstOfArrow = uint64_t{1} << 48;
constexpr uint64_t kFirstOfLinks = LaunchFlows::kMaxArrows * kFirstOfArrow;
constexpr size_t kSpillBytes = size_t{1} << 20;
constexpr size_t kMaxGraphCalls = 4096; // whose nodes may still come

bool is_memset(std::string_view name) { return name.find("memset") != std::string_view::npos; }

// By the names that Kineto gives such calls.
std::string_view call_name(FrameKind kind, std::string_view work) {
  if (kind == FrameKind::kCopy)
    return is_memset(work) ? "\"cudaMemsetAsync\"" : "\"cudaMemcpyAsync\"";
  return kind == FrameKind::kGraph ? "\"cudaGraphLaunch\"" : "\"cudaLaunchKernel\"";
}

// Upstream's events begin with these two.
constexpr const char *kFirstEvents =
    "{\"args\":{\"name\":\"Trace\"},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0},"
    "{\"args\":{\"sort_index\":0},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":0,\"tid\":"
    "0}";

// Microseconds with at least one digit behind the point.
void append_us(std::string &out, int64_t ns) {
  uint64_t distance = ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  if (ns < 0)
    out += '-';
  append_json_number(out, static_cast<int64_t>(distance / kNsPerUs));
  uint64_t rest = distance % kNsPerUs;
  char digits[4] = {'.', static_cast<char>('0' + rest / 100),
                    static_cast<char>('0' + rest / 10 % 10), static_cast<char>('0' + rest % 10)};
  size_t length = 4;
  while (length > 2 && digits[length - 1] == '0')
    --length;
  out.append(digits, length);
}

std::string quoted(std::string_view bytes) {
  std::string json;
  append_quoted(json, bytes);
  return json;
}

/// Rows of the file: numbers and names as upstream gives them.
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
  append_quoted(out, name(id.track) + line);
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

/// Events with a comma before each, keys in the order of their names as upstream writes them. In
/// upstream's shape a launch is its work alone, without arguments of our own, and an arrow begins
/// where the scope around the call does.
class ChromeEncoder final : public EventEncoder {
public:
  void spill_to(Spill spill) override { spill_ = std::move(spill); }
  void begin(const TraceFacts &facts, std::string &out) override;
  void flush(std::string &out) override { hand_out(out); }
  std::string_view tail() const override { return "]}\n"; }
  void end(const TraceEnd &end, std::string &out) override;

private:
  /// What the arrows of a launch of a graph begin at.
  struct Call {
    int64_t row = 0;
    int64_t start_ns = 0;
  };

  /// What upstream writes one after the other.
  enum Part { kThreads, kGraphs, kArrows, kRest, kParts };

  void name_thread(const EventThread &thread) override { rows_.add_thread(thread); }
  void begin_slice(const HeldEvent &held, std::string &out) override;
  void write_counter(const EventCounter &counter, std::string &out) override;
  /// In upstream's shape: writes what was begun since the last call in upstream's order. The rows
  /// have names once something ran on a device.
  void handed_out(std::string &out) override;

  void begin_as_upstream(const HeldEvent &held);
  void add_slice(const HeldEvent &held, int64_t row, std::string &out);
  void add_arguments(const HeldEvent &held, std::string &out);
  void take_metrics(const HeldEvent &held);
  void add_metrics(std::string &out);
  void add_name(const HeldEvent &held, std::string &out);
  void add_flow(const HeldEvent &held, int64_t row, std::string &out);
  void add_mark(char phase, uint64_t id, int64_t row, int64_t at_ns, std::string &out) const;
  bool is_graph_call(const TimelineEvent &event) const;
  std::string_view category(const HeldEvent &held) const;
  const std::string &call_stack(uint32_t node);
  const std::string &name(uint32_t node);

  ChromeLanes rows_;
  Spill spill_;
  std::string row_names_; ///< in upstream's shape, as all down to `scope_flows_`
  std::array<std::string, kParts> parts_;
  bool has_work_ = false;
  bool has_names_ = false;
  bool is_first_ = true;
  ScopeFlows scope_flows_;
  LaunchFlows flows_;
  std::unordered_map<uint64_t, Call> graph_calls_; ///< by launch
  std::deque<uint64_t> oldest_calls_;
  std::unordered_map<uint32_t, std::string> call_stacks_; ///< by node
  std::unordered_map<uint32_t, std::string> names_;       ///< quoted
  /// Names and texts of the slice that is being written.
  std::vector<std::pair<std::string_view, std::string_view>> metrics_;
  std::string shown_name_;
  uint64_t scopes_ = 0;
};

const std::string &ChromeEncoder::call_stack(uint32_t node) {
  auto [found, is_new] = call_stacks_.try_emplace(node);
  if (is_new)
    found->second = nodes_.call_stack(node, facts_.upstream_shape);
  return found->second;
}

const std::string &ChromeEncoder::name(uint32_t node) {
  auto [found, is_new] = names_.try_emplace(node);
  if (is_new)
    found->second = quoted(nodes_.name(node).text());
  return found->second;
}

std::string_view ChromeEncoder::category(const HeldEvent &held) const {
  if (held.track.kind == TrackKind::kProcessor)
    return "program";
  if (held.track.kind == TrackKind::kWarp)
    return "kernel_scope";
  switch (held.event.kind) {
  case EventKind::kOp:
    return "cpu_op";
  case EventKind::kLaunch:
    return "cuda_runtime";
  case EventKind::kInterpreted:
  case EventKind::kKernel:
    return "kernel";
  case EventKind::kCopy:
    return is_memset(nodes_.name(held.event.node).text()) ? "gpu_memset" : "gpu_memcpy";
  case EventKind::kGraph:
    return "graph";
  default:
    break;
  }
  if (held.values != nullptr)
    return "metric";
  switch (nodes_.kind(held.event.node)) {
  case FrameKind::kTest:
    return "test";
  case FrameKind::kLayer:
    return "layer";
  default:
    return "scope";
  }
}

void ChromeEncoder::add_name(const HeldEvent &held, std::string &out) {
  uint32_t node = nodes_.known(held.event.node);
  if (held.event.kind == EventKind::kLaunch) {
    out += call_name(nodes_.kind(node), nodes_.name(node).text());
    return;
  }
  if (held.values == nullptr || held.event.kind != EventKind::kScope) {
    out += name(node);
    return;
  }
  shown_name_ = nodes_.name(node).text();
  const char *before = ": <";
  for (const auto &[key, text] : metrics_) {
    shown_name_.append(before).append(key).append(", ").append(text).append(">");
    before = ", <";
  }
  append_quoted(out, shown_name_);
}

// Upstream keeps metrics in the order of their names.
void ChromeEncoder::take_metrics(const HeldEvent &held) {
  metrics_.clear();
  if (held.values != nullptr)
    for (const auto &[name, text] : held.values->values)
      metrics_.emplace_back(name.text(), text);
  std::sort(metrics_.begin(), metrics_.end());
}

void ChromeEncoder::add_metrics(std::string &out) {
  out += "\"metrics\":{";
  bool is_first = true;
  for (const auto &[key, text] : metrics_) {
    out += is_first ? "" : ",";
    is_first = false;
    append_quoted(out, key);
    out += ':';
    append_quoted(out, text);
  }
  out += "},";
}

// A row of a graph has upstream's arguments: none, but the launch that it was.
void ChromeEncoder::add_arguments(const HeldEvent &held, std::string &out) {
  const TimelineEvent &event = held.event;
  bool is_graph_row = held.track.kind == TrackKind::kGraph;
  bool is_on_stream = held.track.kind == TrackKind::kStream;
  bool is_scope = event.kind == EventKind::kScope && held.track.kind == TrackKind::kThread;
  out += "{\"args\":{";
  size_t before = out.size();
  auto number = [&out](const char *key, int64_t value) {
    out += key;
    append_json_number(out, value);
    out += ',';
  };
  if (!is_graph_row) {
    out += "\"call_stack\":";
    out += call_stack(nodes_.known(event.node));
    out += ',';
  }
  if (event.launch != 0 && !facts_.upstream_shape)
    number("\"correlation\":", static_cast<int64_t>(event.launch));
  if (event.device >= 0 && !is_graph_row && !facts_.upstream_shape)
    number("\"device\":", rows_.device_index(event.device));
  bool is_kernel = event.kind == EventKind::kKernel && is_on_stream && !event.is_of_graph;
  if (held.values != nullptr || is_kernel)
    add_metrics(out);
  if (event.is_open && !facts_.upstream_shape)
    out += "\"open\":true,";
  if (is_scope)
    number("\"scope_id\":", static_cast<int64_t>(++scopes_));
  if (is_on_stream && !facts_.upstream_shape)
    number("\"stream\":", event.track);
  if (out.size() > before)
    out.pop_back(); // the last comma
  out += '}';
}

void ChromeEncoder::add_mark(char phase, uint64_t id, int64_t row, int64_t at_ns,
                             std::string &out) const {
  out += ",{\"bp\":\"e\",\"cat\":\"flow\",\"id\":";
  out += std::to_string(id);
  out += ",\"name\":\"launch->kernel\",\"ph\":\"";
  out += phase;
  out += "\",\"pid\":0,\"tid\":";
  append_json_number(out, row);
  out += ",\"ts\":";
  append_us(out, at_ns - facts_.start_ns);
  out += '}';
}

bool ChromeEncoder::is_graph_call(const TimelineEvent &event) const {
  return event.kind == EventKind::kLaunch && nodes_.kind(event.node) == FrameKind::kGraph;
}

// A launch of a graph has an arrow to each stream, so they are written with its nodes.
void ChromeEncoder::add_flow(const HeldEvent &held, int64_t row, std::string &out) {
  const TimelineEvent &event = held.event;
  if (held.link != 0)
    add_mark(held.is_link_end ? 'f' : 's', kFirstOfLinks + held.link % kFirstOfArrow, row,
             event.start_ns, out);
  if (event.launch == 0)
    return;
  if (is_graph_call(event)) {
    if (graph_calls_.insert_or_assign(event.launch, Call{row, event.start_ns}).second)
      oldest_calls_.push_back(event.launch);
    if (oldest_calls_.size() > kMaxGraphCalls) {
      graph_calls_.erase(oldest_calls_.front());
      oldest_calls_.pop_front();
    }
  } else if (event.kind == EventKind::kLaunch) {
    add_mark('s', event.launch, row, event.start_ns, out);
  } else if (auto arrow = flows_.arrow(event)) {
    uint64_t id = event.launch + *arrow * kFirstOfArrow;
    auto call = graph_calls_.find(event.launch);
    if (call != graph_calls_.end())
      add_mark('s', id, call->second.row, call->second.start_ns, out);
    add_mark('f', id, row, event.start_ns, out);
  }
}

void ChromeEncoder::add_slice(const HeldEvent &held, int64_t row, std::string &out) {
  const TimelineEvent &event = held.event;
  take_metrics(held);
  out += ',';
  add_arguments(held, out);
  out += ",\"cat\":\"";
  out += category(held);
  out += "\",\"dur\":";
  append_us(out, event.end_ns - event.start_ns);
  out += ",\"name\":";
  add_name(held, out);
  out += ",\"ph\":\"X\",\"pid\":0,\"tid\":";
  append_json_number(out, row);
  out += ",\"ts\":";
  append_us(out, event.start_ns - facts_.start_ns);
  out += '}';
}

void ChromeEncoder::begin_slice(const HeldEvent &held, std::string &out) {
  if (facts_.upstream_shape) {
    begin_as_upstream(held);
    return;
  }
  if (spill_ && out.size() >= kSpillBytes)
    spill_(out);
  int64_t row = rows_.row(lanes_, held.lane, out);
  add_slice(held, row, out);
  if (held.track.kind == TrackKind::kGraph)
    return;
  add_flow(held, row, out);
  if (held.event.is_of_graph && held.track.kind == TrackKind::kStream)
    runs_.add(held);
}

void ChromeEncoder::begin_as_upstream(const HeldEvent &held) {
  const TimelineEvent &event = held.event;
  if (event.kind == EventKind::kCopy && event.is_of_graph)
    return; // upstream has none
  auto thread = static_cast<int64_t>(held.track.number);
  if (event.kind == EventKind::kLaunch) {
    scope_flows_.add_launch(event.launch, thread, event.start_ns);
    return;
  }
  bool is_on_thread = held.track.kind == TrackKind::kThread;
  bool is_on_stream = held.track.kind == TrackKind::kStream;
  Part beside = held.track.kind == TrackKind::kGraph ? kGraphs : kRest;
  has_work_ |= !is_on_thread;
  int64_t row = rows_.row(lanes_, held.lane, row_names_);
  add_slice(held, row, parts_[is_on_thread ? kThreads : beside]);
  if (is_on_thread && event.kind == EventKind::kScope)
    scope_flows_.add_scope(scopes_, row, thread, event.start_ns, event.end_ns);
  if (is_on_stream && event.launch != 0)
    scope_flows_.add_work(event.launch, row, event.start_ns, event.is_of_graph);
  if (is_on_stream && event.is_of_graph)
    runs_.add(held);
}

void ChromeEncoder::handed_out(std::string &out) {
  if (!facts_.upstream_shape)
    return;
  size_t before = out.size();
  if (has_work_ && !row_names_.empty()) {
    if (!has_names_)
      out.append(",").append(kFirstEvents);
    has_names_ = true;
    out += std::exchange(row_names_, {});
  }
  for (const ScopeFlows::Arrow &arrow : scope_flows_.settle()) {
    add_mark('s', arrow.scope, arrow.from_row, arrow.from_ns, parts_[kArrows]);
    add_mark('f', arrow.scope, arrow.to_row, arrow.to_ns, parts_[kArrows]);
  }
  for (std::string &part : parts_)
    out += std::exchange(part, {});
  if (is_first_ && out.size() > before) {
    out.erase(before, 1); // the comma
    is_first_ = false;
  }
}

void ChromeEncoder::write_counter(const EventCounter &counter, std::string &out) {
  if (facts_.upstream_shape)
    return;
  int32_t device = rows_.device_index(counter.device);
  auto [quantity, unit] = quantity_and_unit(counter.name.text());
  std::string name(quantity);
  if (device >= 0)
    name = "GPU " + std::to_string(device) + " " + name;
  // Viewers show the key behind the name.
  out += ",{\"args\":{" + quoted(unit.empty() ? "value" : unit) + ":";
  append_json_number(out, counter.value);
  out += "},\"name\":" + quoted(name) + ",\"ph\":\"C\",\"pid\":0,\"tid\":0,\"ts\":";
  append_us(out, counter.at_ns - facts_.start_ns);
  out += '}';
}

void ChromeEncoder::begin(const TraceFacts &facts, std::string &out) {
  start(facts);
  rows_.set_upstream_shape(facts.upstream_shape);
  out += "{\"baseTimeNanoseconds\":";
  append_json_number(out, facts.start_ns + facts.unix_offset_ns);
  if (facts.upstream_shape) {
    out += ",\"displayTimeUnit\":\"us\",\"traceEvents\":[";
    return;
  }
  if (facts.rank >= 0) {
    // With the spaces that readers of Kineto's files look for.
    out += ",\"distributedInfo\": {\"rank\": " + std::to_string(facts.rank);
    if (facts.local_rank >= 0)
      out += ", \"local_rank\": " + std::to_string(facts.local_rank);
    if (facts.world_size >= 0)
      out += ", \"world_size\": " + std::to_string(facts.world_size);
    out += "}";
  }
  out += ",\"displayTimeUnit\":\"us\"";
  out += ",\"host_name\":" + quoted(facts.host);
  out += ",\"process_id\":" + std::to_string(facts.process_id);
  out += ",\"process_name\":" + quoted(facts.process_name);
  out += ",\"traceEvents\":[";
  out += kFirstEvents;
}

// Viewers pass over metadata that they do not know.
void write_profile(std::string_view profile, std::string &out) {
  while (!profile.empty()) {
    std::string_view piece = profile.substr(0, kProfilePieceBytes);
    profile.remove_prefix(piece.size());
    out += ",{\"args\":{\"profile\":\"";
    append_base64(out, piece);
    out += "\",\"rest\":" + std::to_string(profile.size());
    out += "},\"name\":\"proton_bench.profile\",\"ph\":\"M\",\"pid\":0,\"tid\":0}";
  }
}

void ChromeEncoder::end(const TraceEnd &end, std::string &out) {
  std::map<std::string, uint64_t> dropped = finish(end, out);
  if (facts_.upstream_shape && dropped.empty()) {
    out += tail();
    return;
  }
  if (end.profile && !facts_.upstream_shape)
    write_profile(end.profile(), out);
  out += "],\"proton_bench\":{\"clock_drift_ns\":";
  append_json_number(out, end.clock_drift_ns);
  out += ",\"dropped\":{";
  const char *comma = "";
  for (const auto &[reason, count] : dropped) {
    out += comma + quoted(reason) + ":" + std::to_string(count);
    comma = ",";
  }
  out += "},\"is_partial\":false}}\n";
}

} // namespace

std::unique_ptr<TraceEncoder> make_chrome_encoder() { return std::make_unique<ChromeEncoder>(); }

} // namespace proton
