#include "writer/chrome_encoder.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "writer/chrome_lanes.h"
#include "writer/event_lanes.h"
#include "writer/event_nodes.h"
#include "writer/held_events.h"
#include "writer/json_text.h"
#include "writer/launch_flows.h"
#include "writer/utf8_text.h"

namespace proton {
namespace {

constexpr int64_t kNsPerUs = 1000;

std::string json_text(std::string_view text) {
  std::string quoted;
  append_json_text(quoted, valid_utf8(text));
  return quoted;
}

// Microseconds with at least one digit behind the point.
void append_us(std::string &out, int64_t ns) {
  if (ns < 0) {
    out += '-';
    ns = -ns;
  }
  append_json_number(out, ns / kNsPerUs);
  int64_t rest = ns % kNsPerUs;
  char digits[4] = {'.', static_cast<char>('0' + rest / 100),
                    static_cast<char>('0' + rest / 10 % 10), static_cast<char>('0' + rest % 10)};
  size_t length = 4;
  while (length > 2 && digits[length - 1] == '0')
    --length;
  out.append(digits, length);
}

bool is_memset(std::string_view name) { return name.find("memset") != std::string_view::npos; }

class ChromeEncoder final : public TraceEncoder, private SliceVisitor {
public:
  void begin(const TraceFacts &facts, std::string &out) override;
  void add(const EventBatch &batch, std::string &out) override;
  void flush(std::string &out) override;
  std::string_view tail() const override { return "]}\n"; }
  void end(const TraceEnd &end, std::string &out) override;

private:
  void begin(const HeldEvent &held) override;
  void end(const HeldEvent &) override {}
  void add_arguments(const HeldEvent &held);
  void add_metrics(const HeldEvent &held);
  std::string_view category(const HeldEvent &held) const;
  void add_name(const HeldEvent &held);
  void add_flow(const TimelineEvent &event, int64_t row);
  void add_mark(char phase, uint64_t id, int64_t row, int64_t at_ns);
  void write_counters();
  void hand_out(std::string &out);
  const std::string &call_stack(uint32_t node);
  const std::string &name(uint32_t node);

  TraceFacts facts_;
  EventNodes nodes_;
  EventLanes lanes_;
  HeldEvents held_;
  LaunchFlows flows_;
  ChromeLanes rows_;
  std::vector<EventCounter> counters_;
  std::unordered_map<uint32_t, std::string> call_stacks_;
  std::unordered_map<uint32_t, std::string> names_; ///< quoted
  uint64_t scopes_ = 0;
  uint64_t without_lane_ = 0;
  std::string *out_ = nullptr; ///< while events are handed out
};

void ChromeEncoder::begin(const TraceFacts &facts, std::string &out) {
  facts_ = facts;
  out += "{\"baseTimeNanoseconds\":";
  append_json_number(out, facts.start_ns + facts.unix_offset_ns);
  out += ",\"displayTimeUnit\":\"us\"";
  if (!facts.host.empty())
    out += ",\"host_name\":" + json_text(facts.host);
  if (facts.rank >= 0) {
    // With the spaces that readers of Kineto's files look for.
    out += ",\"distributedInfo\": {\"rank\": " + std::to_string(facts.rank);
    if (facts.local_rank >= 0)
      out += ", \"local_rank\": " + std::to_string(facts.local_rank);
    if (facts.world_size >= 0)
      out += ", \"world_size\": " + std::to_string(facts.world_size);
    out += "}";
  }
  out += ",\"process_id\":" + std::to_string(facts.process_id);
  out += ",\"process_name\":" + json_text(facts.process_name);
  out += ",\"traceEvents\":[{\"args\":{\"name\":\"Trace\"},\"name\":\"process_name\",\"ph\":\"M\","
         "\"pid\":0,\"tid\":0},{\"args\":{\"sort_index\":0},\"name\":\"process_sort_index\","
         "\"ph\":\"M\",\"pid\":0,\"tid\":0}";
}

const std::string &ChromeEncoder::call_stack(uint32_t node) {
  auto [found, is_new] = call_stacks_.try_emplace(node);
  if (is_new)
    found->second = nodes_.call_stack(node);
  return found->second;
}

const std::string &ChromeEncoder::name(uint32_t node) {
  auto [found, is_new] = names_.try_emplace(node);
  if (is_new)
    found->second = json_text(nodes_.name(node).text());
  return found->second;
}

std::string_view ChromeEncoder::category(const HeldEvent &held) const {
  switch (held.event.kind) {
  case EventKind::kScope:
    if (held.values != nullptr)
      return "metric";
    return nodes_.kind(held.event.node) == FrameKind::kTest ? "test" : "scope";
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
  }
  return "scope";
}

// By the names that Kineto gives such calls.
std::string_view launch_name(FrameKind kind, std::string_view work) {
  if (kind == FrameKind::kCopy)
    return is_memset(work) ? "\"cudaMemsetAsync\"" : "\"cudaMemcpyAsync\"";
  return kind == FrameKind::kGraph ? "\"cudaGraphLaunch\"" : "\"cudaLaunchKernel\"";
}

void ChromeEncoder::add_name(const HeldEvent &held) {
  uint32_t node = nodes_.known(held.event.node);
  if (held.event.kind == EventKind::kLaunch) {
    *out_ += launch_name(nodes_.kind(node), nodes_.name(node).text());
    return;
  }
  if (held.values == nullptr || held.event.kind != EventKind::kScope) {
    *out_ += name(node);
    return;
  }
  std::string shown(nodes_.name(node).text());
  const char *before = ": <";
  for (const auto &[key, text] : held.values->values) {
    shown += before;
    shown += key.text();
    shown += ", " + text + ">";
    before = ", <";
  }
  append_json_text(*out_, valid_utf8(shown));
}

void ChromeEncoder::add_metrics(const HeldEvent &held) {
  *out_ += ",\"metrics\":{";
  if (held.values != nullptr) {
    bool is_first = true;
    for (const auto &[key, text] : held.values->values) {
      *out_ += is_first ? "" : ",";
      is_first = false;
      append_json_text(*out_, valid_utf8(key.text()));
      *out_ += ':';
      append_json_text(*out_, valid_utf8(text));
    }
  }
  *out_ += '}';
}

// In the order of their names, as upstream writes them.
void ChromeEncoder::add_arguments(const HeldEvent &held) {
  const TimelineEvent &event = held.event;
  std::string &out = *out_;
  bool is_work = event.device >= 0;
  out += "{\"args\":{\"call_stack\":";
  out += call_stack(nodes_.known(event.node));
  if (event.launch != 0) {
    out += ",\"correlation\":";
    append_json_number(out, static_cast<int64_t>(event.launch));
  }
  if (is_work) {
    out += ",\"device\":";
    append_json_number(out, int64_t{rows_.device_index(event.device)});
  }
  if (held.values != nullptr || (event.kind == EventKind::kKernel && !event.is_of_graph))
    add_metrics(held);
  if (event.is_open)
    out += ",\"open\":true";
  if (event.kind == EventKind::kScope) {
    out += ",\"scope_id\":";
    append_json_number(out, static_cast<int64_t>(++scopes_));
  }
  if (is_work) {
    out += ",\"stream\":";
    append_json_number(out, int64_t{event.track});
  }
  out += '}';
}

void ChromeEncoder::add_mark(char phase, uint64_t id, int64_t row, int64_t at_ns) {
  std::string &out = *out_;
  out += ",{\"bp\":\"e\",\"cat\":\"flow\",\"id\":";
  append_json_number(out, static_cast<int64_t>(id));
  out += ",\"name\":\"launch->kernel\",\"ph\":\"";
  out += phase;
  out += "\",\"pid\":0,\"tid\":";
  append_json_number(out, row);
  out += ",\"ts\":";
  append_us(out, at_ns - facts_.start_ns);
  out += '}';
}

void ChromeEncoder::add_flow(const TimelineEvent &event, int64_t row) {
  if (event.launch == 0)
    return;
  if (event.kind == EventKind::kLaunch)
    add_mark('s', event.launch, row, event.start_ns);
  else if (flows_.arrow(event))
    add_mark('f', event.launch, row, event.start_ns);
}

void ChromeEncoder::begin(const HeldEvent &held) {
  const TimelineEvent &event = held.event;
  std::string &out = *out_;
  int64_t row = rows_.row(lanes_, held.lane, out);
  out += ',';
  add_arguments(held);
  out += ",\"cat\":\"";
  out += category(held);
  out += "\",\"dur\":";
  append_us(out, event.end_ns - event.start_ns);
  out += ",\"name\":";
  add_name(held);
  out += ",\"ph\":\"X\",\"pid\":0,\"tid\":";
  append_json_number(out, row);
  out += ",\"ts\":";
  append_us(out, event.start_ns - facts_.start_ns);
  out += '}';
  add_flow(event, row);
}

void ChromeEncoder::write_counters() {
  std::string &out = *out_;
  for (const EventCounter &counter : counters_) {
    int32_t device = rows_.device_index(counter.device);
    std::string name(counter.name.text());
    if (device >= 0)
      name = "GPU " + std::to_string(device) + " " + name;
    out += ",{\"args\":{\"value\":";
    append_json_number(out, counter.value);
    out += "},\"name\":" + json_text(name) + ",\"ph\":\"C\",\"pid\":0,\"tid\":0,\"ts\":";
    append_us(out, counter.at_ns - facts_.start_ns);
    out += '}';
  }
  counters_.clear();
}

void ChromeEncoder::hand_out(std::string &out) {
  out_ = &out;
  without_lane_ += held_.hand_out(lanes_, *this);
  write_counters();
}

void ChromeEncoder::add(const EventBatch &batch, std::string &out) {
  nodes_.add(batch.nodes);
  for (const EventThread &thread : batch.threads)
    rows_.add_thread(thread);
  counters_.insert(counters_.end(), batch.counters.begin(), batch.counters.end());
  held_.add(batch);
  if (held_.size() + counters_.size() >= HeldEvents::kMaxEvents)
    hand_out(out);
}

void ChromeEncoder::flush(std::string &out) { hand_out(out); }

void ChromeEncoder::end(const TraceEnd &end, std::string &out) {
  hand_out(out);
  out += "],\"is_partial\":";
  out += end.is_partial ? "true" : "false";
  out += "}\n";
}

} // namespace

std::unique_ptr<TraceEncoder> make_chrome_encoder() { return std::make_unique<ChromeEncoder>(); }

} // namespace proton
