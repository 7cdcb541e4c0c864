// What each launch of a graph ran on each stream, and in which scopes of its capture.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "writer/events/event_nodes.h"
#include "writer/events/held_events.h"

namespace proton {

/// Makes slices of the nodes of graphs: one for each launch and stream, for the graph's own node,
/// and inside it one for each scope of the capture, as long as its nodes follow one another.
class GraphRuns {
public:
  explicit GraphRuns(const EventNodes &nodes) : nodes_(nodes) {}
  /// Adds a node of a graph; nodes of a lane come by ascending time.
  void add(const HeldEvent &work);
  /// Hands over the slices of runs that are over, because other work followed on their lanes.
  void take_finished(HeldEvents &to);
  /// Call when no more nodes come.
  void finish();

private:
  static constexpr size_t kMaxSlices = 65536; ///< of one run; a longer one is cut

  struct Run {
    uint64_t launch = 0;
    uint32_t parent = 0;           ///< of the newest node
    std::vector<HeldEvent> open;   ///< outermost first
    std::vector<HeldEvent> slices; ///< that are over
  };

  void enter(Run &run, const HeldEvent &work);
  static void leave(Run &run, size_t depth);
  void close(Run &run);

  const EventNodes &nodes_;
  std::map<uint32_t, Run> runs_; ///< by lane of the nodes
  std::vector<HeldEvent> finished_;
};

} // namespace proton
