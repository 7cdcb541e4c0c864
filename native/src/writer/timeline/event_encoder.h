// What encoders of all formats do with events: hold them until they can be written in the order of
// time, find lanes for them, and make slices of the scopes inside kernels and of runs of graphs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calltree/scope_timeline.h"
#include "record/timeline_event.h"
#include "writer/timeline/event_lanes.h"
#include "writer/timeline/event_nodes.h"
#include "writer/timeline/trace_encoder.h"

namespace proton {

struct HeldEvent {
  TimelineEvent event; ///< its `values` do not point into the batch
  TrackId track;
  uint32_t lane = 0;                   ///< of the EventLanes
  const EventValues *values = nullptr; ///< may be null
  uint64_t link = 0;                   ///< joins the halves of what ended on another track
  bool is_link_end = false;            ///< the second half
};

/// Makes slices of the nodes of graphs: one for each launch and stream, for the graph's own node,
/// and inside it one for each scope of the capture, as long as its nodes follow one another.
class GraphRuns {
public:
  explicit GraphRuns(const EventNodes &nodes) : nodes_(nodes) {}
  /// Adds a node of a graph; nodes of a lane come by ascending time.
  void add(const HeldEvent &work);
  /// The slices of runs that are over, because other work followed on their lanes.
  std::vector<HeldEvent> take_finished() { return std::exchange(finished_, {}); }
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

/// The slices that arrows from a launch lead to: what it ran; of a graph the first node on each
/// stream.
class LaunchFlows {
public:
  /// Arrows from one launch of a graph; further streams get none.
  static constexpr uint32_t kMaxArrows = 8;

  /// Number of the arrow that ends at the event, among the arrows of its launch; none ends at a
  /// launch itself. Events come by ascending start.
  std::optional<uint32_t> arrow(const TimelineEvent &event);

private:
  static constexpr size_t kMaxLaunches = 4096; ///< graphs whose nodes may still come

  std::unordered_map<uint64_t, std::vector<uint64_t>> streams_; ///< by launch
  std::deque<uint64_t> oldest_;
};

/// Subclasses receive begins and ends of slices: lane by lane, nested, and by ascending time in
/// each lane; then the readings of counters.
class EventEncoder : public TraceEncoder {
public:
  void add(const EventBatch &batch, std::string &out) final;

protected:
  EventEncoder() : runs_(nodes_) {}
  /// Call it first.
  void start(const TraceFacts &facts);
  /// Writes all events that are held, and forgets them.
  void hand_out(std::string &out);
  /// Writes what is left. Returns the lost records by reason, events without a lane among them.
  std::map<std::string, uint64_t> finish(const TraceEnd &end, std::string &out);

  virtual void name_thread(const EventThread &thread) = 0;
  virtual void begin_slice(const HeldEvent &held, std::string &out) = 0;
  virtual void end_slice(const HeldEvent &) {}
  virtual void write_counter(const EventCounter &counter, std::string &out) = 0;
  /// All that was held is written.
  virtual void handed_out(std::string &) {}

  TraceFacts facts_;
  EventNodes nodes_;
  EventLanes lanes_;
  GraphRuns runs_; ///< receives the nodes of graphs from subclasses

private:
  static constexpr size_t kMaxEvents = 65536; ///< are handed out at this number

  void hold(const HeldEvent &held);
  void hand_out_if_many(std::string &out);
  void sort();
  void place();
  void write_lane(const std::vector<uint32_t> &positions, std::string &out);
  int64_t timer_offset_ns(const TimelineLaunch &launch);
  void add_programs(const TimelineLaunch &launch);
  void add_scopes(const TimelineLaunch &launch, const TimelineProgram &program, int64_t start_ns);

  std::vector<HeldEvent> events_;
  std::deque<EventValues> values_;
  std::vector<EventCounter> counters_;
  std::vector<uint32_t> order_;
  std::vector<std::vector<uint32_t>> by_lane_;
  int64_t newest_ns_ = 0; ///< end of what was handed out
  uint64_t without_lane_ = 0;
  std::map<int32_t, int64_t> offsets_ns_; ///< by device: its timer less CLOCK_MONOTONIC
  uint64_t links_ = 0;
};

} // namespace proton
