#include "writer/tree/profile_writer.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <tuple>

#include "writer/bytes/json_text.h"
#include "writer/bytes/utf8_text.h"
#include "writer/tree/kernel_scope_times.h"

namespace proton {
namespace {

// Chrome's names of colours; a scope's id chooses one.
constexpr const char *kColours[] = {"cq_build_passed",
                                    "cq_build_failed",
                                    "thread_state_iowait",
                                    "thread_state_running",
                                    "thread_state_runnable",
                                    "thread_state_unknown",
                                    "rail_response",
                                    "rail_idle",
                                    "rail_load",
                                    "cq_build_attempt_passed",
                                    "cq_build_attempt_failed"};
/// Call `place` by ascending start, the longer range first.
class Lanes {
public:
  /// Lane of a range, which may begin when another ends.
  size_t place(uint64_t start, uint64_t end) {
    size_t lane = 0;
    while (lane < ends_.size() && ends_[lane] > start)
      ++lane;
    if (lane == ends_.size())
      ends_.push_back(0);
    ends_[lane] = end;
    return lane;
  }

private:
  std::vector<uint64_t> ends_;
};

class Trace {
public:
  Trace(const CallPathTree &tree, const ScopeTimeline &timeline, const std::vector<Device> &devices)
      : tree_(tree), timeline_(timeline), devices_(devices) {}
  std::string write(bool shows_processors);

private:
  struct Event {
    std::string_view name;
    std::string_view category;
    std::string_view thread;
    uint64_t start_ps = 0;
    uint64_t duration_ps = 0;
  };

  uint64_t first_init_ns() const;
  void add_launch(const TimelineLaunch &launch);
  void add_program(const TimelineLaunch &launch, const TimelineProgram &program);
  void add_scope(const TimelineLaunch &launch, const TimelineScope &scope, size_t lane);
  void add_link(const TimelineScope &scope, Event event);
  void describe(const TimelineLaunch &launch, const TimelineProgram &program);
  void add_processors();
  void open(const Event &event, std::string_view extra, uint8_t colour);
  std::string device_suffix(int32_t device) const;
  void time(uint64_t picoseconds);

  const CallPathTree &tree_;
  const ScopeTimeline &timeline_;
  const std::vector<Device> &devices_;
  uint64_t base_ns_ = 0;
  uint64_t program_start_ps_ = 0;
  int64_t next_link_ = 1;
  bool is_empty_ = true;
  std::string out_;
  std::string kernel_; ///< JSON texts of the launch and the program at hand
  std::string call_stack_;
  std::string arguments_;
  std::string process_;
};

uint64_t Trace::first_init_ns() const {
  uint64_t first = std::numeric_limits<uint64_t>::max();
  for (const auto &launch : timeline_.launches())
    for (const TimelineProgram &program : launch->programs)
      first = std::min(first, program.init_ns);
  return first == std::numeric_limits<uint64_t>::max() ? 0 : first;
}

void Trace::time(uint64_t picoseconds) {
  char digits[8];
  append_json_number(out_, static_cast<int64_t>(picoseconds / 1'000'000));
  out_ += '.';
  std::snprintf(digits, sizeof digits, "%06u", static_cast<unsigned>(picoseconds % 1'000'000));
  size_t length = 6;
  while (length > 1 && digits[length - 1] == '0')
    --length;
  out_.append(digits, length);
}

std::string Trace::device_suffix(int32_t device) const {
  auto position = static_cast<size_t>(device);
  if (device <= 0 || position >= devices_.size())
    return "";
  return " " + devices_[position].kind + ":" + std::to_string(devices_[position].index);
}

// Writes up to the keys behind `ph`, from `process_`, `arguments_` and the current times.
void Trace::open(const Event &event, std::string_view extra, uint8_t colour) {
  out_ += is_empty_ ? "" : ",";
  is_empty_ = false;
  out_ += "{\"args\":{";
  out_ += arguments_;
  out_ += "},";
  out_ += extra;
  out_ += "\"cat\":";
  out_ += event.category;
  out_ += ",\"cname\":\"";
  out_ += kColours[colour % std::size(kColours)];
  out_ += "\",\"dur\":";
  time(event.duration_ps);
  out_ += ",\"name\":";
  append_json_text(out_, event.name);
  out_ += ",\"ph\":\"X\",\"pid\":";
  out_ += process_;
  out_ += ",\"tid\":";
  append_json_text(out_, event.thread);
  out_ += ",\"ts\":";
  time(event.start_ps);
  out_ += '}';
}

// What upstream writes for every event, in the order of its keys.
void Trace::describe(const TimelineLaunch &launch, const TimelineProgram &program) {
  auto add = [this](const char *key, uint64_t value) {
    arguments_ += key;
    append_json_number(arguments_, static_cast<int64_t>(value));
  };
  arguments_.clear();
  add("\"Finalization Time (ns)\":", program.post_final_ns - program.pre_final_ns);
  arguments_ += ",\"Frequency (MHz)\":";
  append_json_number(arguments_, static_cast<double>(scope_clock_hz(launch)) / 1e6);
  add(",\"Init Time (ns)\":", program.init_ns);
  add(",\"Post Final Time (ns)\":", program.post_final_ns);
  arguments_ += ",\"call_stack\":" + call_stack_;
}

// Two marks, which viewers join by an arrow.
void Trace::add_link(const TimelineScope &scope, Event event) {
  std::string bind = "\"bind_id\":" + std::to_string(next_link_++) + ",";
  uint64_t end_ps = event.start_ps + event.duration_ps;
  event.category = "\"flow\"";
  event.duration_ps = 0;
  std::string from = "warp " + std::to_string(scope.warp) + " (line 0)";
  event.thread = from;
  open(event, bind + "\"flow_out\":true,", scope.scope);
  std::string to = "warp " + std::to_string(scope.end_warp) + " (line 0)";
  event.thread = to;
  event.start_ps = end_ps;
  open(event, bind + "\"flow_in\":true,", scope.scope);
}

void Trace::add_scope(const TimelineLaunch &launch, const TimelineScope &scope, size_t lane) {
  uint64_t hz = scope_clock_hz(launch);
  uint64_t start_ps = cycle_picoseconds(scope.start_cycle, hz);
  Event event;
  std::string name = valid_utf8((*launch.scope_names)[scope.scope].text());
  event.name = name;
  event.category = scope.is_async ? "\"async\"" : std::string_view(kernel_);
  event.start_ps = program_start_ps_ + start_ps;
  event.duration_ps = cycle_picoseconds(scope.start_cycle + scope.cycles, hz) - start_ps;
  if (scope.warp != scope.end_warp) {
    add_link(scope, event);
    return;
  }
  std::string thread =
      "warp " + std::to_string(scope.warp) + " (line " + std::to_string(lane) + ")";
  event.thread = thread;
  open(event, "", scope.scope);
}

void Trace::add_program(const TimelineLaunch &launch, const TimelineProgram &program) {
  describe(launch, program);
  program_start_ps_ = first_cycle_ps(launch, program, base_ns_);
  std::string process(tree_.nodes()[launch.kernel].name.text());
  process += " Core" + std::to_string(program.processor) + " CTA" +
             std::to_string(program.program) + device_suffix(launch.device);
  process_.clear();
  append_quoted(process_, process);
  auto scopes = std::span(launch.instances).subspan(program.first, program.count);
  std::vector<const TimelineScope *> order(scopes.size());
  std::transform(scopes.begin(), scopes.end(), order.begin(), [](auto &scope) { return &scope; });
  std::stable_sort(order.begin(), order.end(), [](auto *left, auto *right) {
    return std::tuple(left->warp, left->start_cycle, ~left->cycles) <
           std::tuple(right->warp, right->start_cycle, ~right->cycles);
  });
  Lanes lanes;
  uint16_t warp = 0;
  for (const TimelineScope *scope : order) {
    if (scope->warp != warp)
      lanes = {};
    warp = scope->warp;
    bool is_link = scope->warp != scope->end_warp;
    size_t lane = is_link ? 0 : lanes.place(scope->start_cycle, scope->start_cycle + scope->cycles);
    add_scope(launch, *scope, lane);
  }
}

void Trace::add_launch(const TimelineLaunch &launch) {
  const std::vector<TreeNode> &nodes = tree_.nodes();
  kernel_.clear();
  append_quoted(kernel_, nodes[launch.kernel].name.text());
  std::vector<NodeIndex> path; // innermost first
  for (NodeIndex node = launch.kernel; node != kNoNode; node = nodes[node].parent)
    path.push_back(node);
  call_stack_ = "[";
  for (auto node = path.rbegin(); node != path.rend(); ++node) {
    call_stack_ += node == path.rbegin() ? "" : ",";
    append_quoted(call_stack_, nodes[*node].name.text());
  }
  call_stack_ += ']';
  for (const TimelineProgram &program : launch.programs)
    add_program(launch, program);
}

// Which programs each processor ran, and when.
void Trace::add_processors() {
  struct Run {
    const TimelineLaunch *launch;
    const TimelineProgram *program;
  };
  std::map<std::pair<int32_t, uint32_t>, std::vector<Run>> by_processor;
  for (const auto &launch : timeline_.launches())
    for (const TimelineProgram &program : launch->programs)
      if (program.post_final_ns >= program.init_ns)
        by_processor[{launch->device, program.processor}].push_back({launch.get(), &program});
  for (auto &[where, runs] : by_processor) {
    std::stable_sort(runs.begin(), runs.end(), [](const Run &left, const Run &right) {
      return left.program->init_ns < right.program->init_ns;
    });
    process_.clear();
    append_quoted(process_, "Cores" + device_suffix(where.first));
    Lanes lanes;
    for (const Run &run : runs) {
      const TimelineProgram &program = *run.program;
      std::string name(tree_.nodes()[run.launch->kernel].name.text());
      name = valid_utf8(name + " CTA" + std::to_string(program.program));
      size_t lane = lanes.place(program.init_ns, program.post_final_ns);
      std::string thread =
          "Core " + std::to_string(where.second) + " (line " + std::to_string(lane) + ")";
      arguments_.clear();
      open({name, "\"core\"", thread, (program.init_ns - base_ns_) * 1000,
            (program.post_final_ns - program.init_ns) * 1000},
           "", static_cast<uint8_t>(program.program));
    }
  }
}

std::string Trace::write(bool shows_processors) {
  base_ns_ = first_init_ns();
  out_ = "{";
  if (base_ns_ != 0) {
    out_ += "\"baseTimeNanoseconds\":";
    append_json_number(out_, static_cast<int64_t>(base_ns_));
    out_ += ',';
  }
  out_ += "\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  for (const auto &launch : timeline_.launches())
    add_launch(*launch);
  if (shows_processors)
    add_processors();
  out_ += "]}\n";
  return std::move(out_);
}

} // namespace

std::string write_scope_trace(const CallPathTree &tree, const ScopeTimeline &timeline,
                              const std::vector<Device> &devices, bool upstream_shape) {
  return Trace(tree, timeline, devices).write(!upstream_shape);
}

} // namespace proton
