// Slices of a Perfetto file.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "writer/events/event_lanes.h"
#include "writer/events/event_nodes.h"
#include "writer/events/graph_runs.h"
#include "writer/events/held_events.h"
#include "writer/events/launch_flows.h"
#include "writer/timeline/perfetto_packets.h"
#include "writer/timeline/perfetto_strings.h"
#include "writer/timeline/perfetto_tracks.h"

namespace proton {

/// Parts of the encoder that outlive its slices.
struct PerfettoParts {
  const EventNodes &nodes;
  const EventLanes &lanes;
  PerfettoStrings &strings;
  PerfettoTracks &tracks;
  PerfettoPackets &packets;
  GraphRuns &runs; ///< receives the nodes of graphs
};

class PerfettoSlices final : public SliceVisitor {
public:
  /// `flow_key` is one of the process: numbers of its arrows differ from those of others.
  PerfettoSlices(const PerfettoParts &parts, int64_t unix_offset_ns, uint64_t flow_key);

  void begin(const HeldEvent &held) override;
  void end(const HeldEvent &held) override;

private:
  void stand_on(uint32_t lane);
  const std::string &node_fields(const HeldEvent &held, uint32_t node, uint32_t category);
  uint32_t name(const HeldEvent &held, uint32_t node);
  void add_annotations(const HeldEvent &held);
  void add_flows(const HeldEvent &held, FrameKind kind);
  void add_flow(uint64_t number, uint32_t arrow);

  const PerfettoParts parts_;
  const uint64_t unix_offset_ns_;
  const uint64_t flow_key_;
  const uint32_t call_stack_key_;
  const uint32_t correlation_key_;
  const uint32_t open_key_;
  std::string begin_; ///< fields of what begins
  std::string end_;   ///< of what ends
  LaunchFlows flows_;
  std::vector<uint64_t> lane_tracks_;                     ///< 0: not described yet
  std::unordered_map<uint64_t, std::string> node_fields_; ///< by node and category
  std::string more_;                                      ///< fields of the event at hand
};

/// Names of categories, the first of which has the number 1.
void add_slice_categories(PerfettoStrings &strings);

} // namespace proton
