#include "writer/timeline/chrome_slices.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "writer/bytes/json_text.h"

namespace proton {
namespace {

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

} // namespace

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

const std::string &ChromeSlices::call_stack(uint32_t node) {
  auto [found, is_new] = call_stacks_.try_emplace(node);
  if (is_new)
    found->second = nodes_.call_stack(node, upstream_shape_);
  return found->second;
}

const std::string &ChromeSlices::name(uint32_t node) {
  auto [found, is_new] = names_.try_emplace(node);
  if (is_new)
    found->second = quoted(nodes_.name(node).text());
  return found->second;
}

std::string_view ChromeSlices::category(const HeldEvent &held) const {
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

void ChromeSlices::add_name(const HeldEvent &held) {
  uint32_t node = nodes_.known(held.event.node);
  if (held.event.kind == EventKind::kLaunch) {
    out_ += call_name(nodes_.kind(node), nodes_.name(node).text());
    return;
  }
  if (held.values == nullptr || held.event.kind != EventKind::kScope) {
    out_ += name(node);
    return;
  }
  shown_name_ = nodes_.name(node).text();
  const char *before = ": <";
  for (const auto &[key, text] : metrics_) {
    shown_name_.append(before).append(key).append(", ").append(text).append(">");
    before = ", <";
  }
  append_quoted(out_, shown_name_);
}

// Upstream keeps metrics in the order of their names.
void ChromeSlices::take_metrics(const HeldEvent &held) {
  metrics_.clear();
  if (held.values != nullptr)
    for (const auto &[name, text] : held.values->values)
      metrics_.emplace_back(name.text(), text);
  std::sort(metrics_.begin(), metrics_.end());
}

void ChromeSlices::add_metrics() {
  out_ += "\"metrics\":{";
  bool is_first = true;
  for (const auto &[key, text] : metrics_) {
    out_ += is_first ? "" : ",";
    is_first = false;
    append_quoted(out_, key);
    out_ += ':';
    append_quoted(out_, text);
  }
  out_ += "},";
}

// A row of a graph has upstream's arguments: none, but the launch that it was.
void ChromeSlices::add_arguments(const HeldEvent &held) {
  const TimelineEvent &event = held.event;
  bool is_graph_row = held.track.kind == TrackKind::kGraph;
  bool is_on_stream = held.track.kind == TrackKind::kStream;
  bool is_scope = event.kind == EventKind::kScope && held.track.kind == TrackKind::kThread;
  out_ += "{\"args\":{";
  size_t before = out_.size();
  auto number = [this](const char *key, int64_t value) {
    out_ += key;
    append_json_number(out_, value);
    out_ += ',';
  };
  if (!is_graph_row) {
    out_ += "\"call_stack\":";
    out_ += call_stack(nodes_.known(event.node));
    out_ += ',';
  }
  if (event.launch != 0 && !upstream_shape_)
    number("\"correlation\":", static_cast<int64_t>(event.launch));
  if (event.device >= 0 && !is_graph_row && !upstream_shape_)
    number("\"device\":", rows_.device_index(event.device));
  bool is_kernel = event.kind == EventKind::kKernel && is_on_stream && !event.is_of_graph;
  if (held.values != nullptr || is_kernel)
    add_metrics();
  if (event.is_open && !upstream_shape_)
    out_ += "\"open\":true,";
  if (is_scope)
    number("\"scope_id\":", static_cast<int64_t>(++scopes_));
  if (is_on_stream && !upstream_shape_)
    number("\"stream\":", event.track);
  if (out_.size() > before)
    out_.pop_back(); // the last comma
  out_ += '}';
}

void ChromeSlices::add_mark(char phase, uint64_t id, int64_t row, int64_t at_ns) {
  out_ += ",{\"bp\":\"e\",\"cat\":\"flow\",\"id\":";
  out_ += std::to_string(id);
  out_ += ",\"name\":\"launch->kernel\",\"ph\":\"";
  out_ += phase;
  out_ += "\",\"pid\":0,\"tid\":";
  append_json_number(out_, row);
  out_ += ",\"ts\":";
  append_us(out_, at_ns - start_ns_);
  out_ += '}';
}

bool ChromeSlices::is_graph_call(const TimelineEvent &event) const {
  return event.kind == EventKind::kLaunch && nodes_.kind(event.node) == FrameKind::kGraph;
}

// A launch of a graph has an arrow to each stream, so they are written with its nodes.
void ChromeSlices::add_flow(const HeldEvent &held, int64_t row) {
  const TimelineEvent &event = held.event;
  if (held.link != 0)
    add_mark(held.is_link_end ? 'f' : 's', kFirstOfLinks + held.link % kFirstOfArrow, row,
             event.start_ns);
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
    add_mark('s', event.launch, row, event.start_ns);
  } else if (auto arrow = flows_.arrow(event)) {
    uint64_t id = event.launch + *arrow * kFirstOfArrow;
    auto call = graph_calls_.find(event.launch);
    if (call != graph_calls_.end())
      add_mark('s', id, call->second.row, call->second.start_ns);
    add_mark('f', id, row, event.start_ns);
  }
}

void ChromeSlices::add_slice(const HeldEvent &held, int64_t row) {
  const TimelineEvent &event = held.event;
  take_metrics(held);
  out_ += ',';
  add_arguments(held);
  out_ += ",\"cat\":\"";
  out_ += category(held);
  out_ += "\",\"dur\":";
  append_us(out_, event.end_ns - event.start_ns);
  out_ += ",\"name\":";
  add_name(held);
  out_ += ",\"ph\":\"X\",\"pid\":0,\"tid\":";
  append_json_number(out_, row);
  out_ += ",\"ts\":";
  append_us(out_, event.start_ns - start_ns_);
  out_ += '}';
}

void ChromeSlices::begin(const HeldEvent &held) {
  if (upstream_shape_) {
    begin_as_upstream(held);
    return;
  }
  if (spill_ && out_.size() >= kSpillBytes)
    spill_(out_);
  int64_t row = rows_.row(lanes_, held.lane, out_);
  add_slice(held, row);
  if (held.track.kind == TrackKind::kGraph)
    return;
  add_flow(held, row);
  if (held.event.is_of_graph && held.track.kind == TrackKind::kStream)
    runs_.add(held);
}

void ChromeSlices::begin_as_upstream(const HeldEvent &held) {
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
  std::string &part = parts_[is_on_thread ? kThreads : beside];
  out_.swap(part);
  add_slice(held, row);
  out_.swap(part);
  if (is_on_thread && event.kind == EventKind::kScope)
    scope_flows_.add_scope(scopes_, row, thread, event.start_ns, event.end_ns);
  if (is_on_stream && event.launch != 0)
    scope_flows_.add_work(event.launch, row, event.start_ns, event.is_of_graph);
  if (is_on_stream && event.is_of_graph)
    runs_.add(held);
}

void ChromeSlices::settle() {
  size_t before = out_.size();
  if (has_work_ && !row_names_.empty()) {
    if (!has_names_)
      out_.append(",").append(kFirstEvents);
    has_names_ = true;
    out_ += std::exchange(row_names_, {});
  }
  out_.swap(parts_[kArrows]);
  for (const ScopeFlows::Arrow &arrow : scope_flows_.settle()) {
    add_mark('s', arrow.scope, arrow.from_row, arrow.from_ns);
    add_mark('f', arrow.scope, arrow.to_row, arrow.to_ns);
  }
  out_.swap(parts_[kArrows]);
  for (std::string &part : parts_)
    out_ += std::exchange(part, {});
  if (is_first_ && out_.size() > before) {
    out_.erase(before, 1); // the comma
    is_first_ = false;
  }
}

} // namespace proton
