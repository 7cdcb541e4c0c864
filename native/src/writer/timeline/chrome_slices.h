// Slices of a file in Chrome's trace format.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "writer/events/event_lanes.h"
#include "writer/events/event_nodes.h"
#include "writer/events/graph_runs.h"
#include "writer/events/held_events.h"
#include "writer/events/launch_flows.h"
#include "writer/events/scope_flows.h"
#include "writer/timeline/chrome_lanes.h"
#include "writer/timeline/trace_encoder.h"

namespace proton {

/// Events with a comma before each, keys in the order of their names as upstream writes them. In
/// upstream's shape a launch is its work alone, without arguments of our own, and an arrow begins
/// where the scope around the call does.
class ChromeSlices final : public SliceVisitor {
public:
  ChromeSlices(const EventNodes &nodes, const EventLanes &lanes, ChromeLanes &rows, GraphRuns &runs,
               int64_t start_ns, bool upstream_shape)
      : nodes_(nodes), lanes_(lanes), rows_(rows), runs_(runs), start_ns_(start_ns),
        upstream_shape_(upstream_shape) {}

  void begin(const HeldEvent &held) override;
  void end(const HeldEvent &) override {}
  /// Gives what was written behind what it is given, between two calls of this.
  void exchange(std::string &out) { out_.swap(out); }
  /// In upstream's shape: writes what was begun since the last call in upstream's order. The rows
  /// have names once something ran on a device.
  void settle();
  void spill_to(Spill spill) { spill_ = std::move(spill); }

private:
  /// What the arrows of a launch of a graph begin at.
  struct Call {
    int64_t row = 0;
    int64_t start_ns = 0;
  };

  /// What upstream writes one after the other.
  enum Part { kThreads, kGraphs, kArrows, kRest, kParts };

  void begin_as_upstream(const HeldEvent &held);
  void add_slice(const HeldEvent &held, int64_t row);
  void add_arguments(const HeldEvent &held);
  void take_metrics(const HeldEvent &held);
  void add_metrics();
  void add_name(const HeldEvent &held);
  void add_flow(const HeldEvent &held, int64_t row);
  void add_mark(char phase, uint64_t id, int64_t row, int64_t at_ns);
  bool is_graph_call(const TimelineEvent &event) const;
  std::string_view category(const HeldEvent &held) const;
  const std::string &call_stack(uint32_t node);
  const std::string &name(uint32_t node);

  const EventNodes &nodes_;
  const EventLanes &lanes_;
  ChromeLanes &rows_;
  GraphRuns &runs_;
  const int64_t start_ns_;
  const bool upstream_shape_;
  std::string row_names_;
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
  Spill spill_;
  std::string out_;
};

/// Upstream's events begin with these two.
inline constexpr const char *kFirstEvents =
    "{\"args\":{\"name\":\"Trace\"},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0},"
    "{\"args\":{\"sort_index\":0},\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":0,\"tid\":"
    "0}";

/// Microseconds with at least one digit behind the point.
void append_us(std::string &out, int64_t ns);
/// `append_quoted` as an own text.
std::string quoted(std::string_view bytes);

} // namespace proton
