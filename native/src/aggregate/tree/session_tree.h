// One session's phases: turns captures into call paths of its own tree and adds what records say.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "aggregate/events/session_events.h"
#include "aggregate/kernels/counter_log.h"
#include "aggregate/memory/memory_use.h"
#include "aggregate/times/device_times.h"
#include "aggregate/tree/op_work.h"
#include "calltree/call_path_tree.h"
#include "calltree/scope_timeline.h"
#include "correlation/graph_launches.h"
#include "record/cycle_record.h"
#include "record/record.h"

namespace proton {

struct ContextNode;
class KernelTimes;

/// What makes the call paths of a session; flags. Without kPython scopes do.
enum class ContextSource : uint8_t {
  kShadow = 0,
  kPython = 1,
  kLayers = 2,
  kOps = 4,
  kShapes = 8, ///< operators with other arguments are other rows
};
constexpr ContextSource operator|(ContextSource one, ContextSource other) {
  return static_cast<ContextSource>(static_cast<uint8_t>(one) | static_cast<uint8_t>(other));
}
constexpr bool has(ContextSource source, ContextSource part) {
  return (static_cast<uint8_t>(source) & static_cast<uint8_t>(part)) != 0;
}

/// Where a node of a graph was captured; number 0: the session does not know.
struct GraphPlace {
  CaptureId id = 0;
  const Capture *at = nullptr;
};

/// Work of a device as it ran; nodes of a graph have the launch of the graph.
struct DeviceRun {
  Name name;
  uint64_t launch = 0;   ///< its correlation id
  int64_t called_ns = 0; ///< as of LaunchRecord; of a graph's later nodes 0
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

/// Not synchronised: the aggregator's lock guards it.
class SessionTree {
public:
  static constexpr size_t kMostRuns = size_t{1} << 20; ///< 40 MB

  SessionTree(ContextSource source, uint32_t generation, bool records_wall,
              bool keeps_timeline = false, bool upstream_shape = false);

  // Each returns the node to which it added; that of a range is kNoNode when the session does not
  // show it.
  NodeIndex add_range(uint32_t phase, const RangeRecord &record);
  /// Adds to the node to which the record of the range adds.
  void add_count(uint32_t phase, const CountRecord &record);
  NodeIndex add_kernel(uint32_t phase, const LaunchRecord &launch, const KernelRecord &record);
  NodeIndex add_copy(uint32_t phase, const LaunchRecord &launch, const CopyRecord &record);
  /// What the scopes inside a kernel took, below its leaf: that of its times, if it has any.
  void add_cycles(uint32_t phase, const CycleRecord &record);
  /// When they ran, if the session keeps that. False: there was no room.
  bool add_timeline(uint32_t phase, const TimelineRecord &record);
  /// Whether it writes that while it records, or keeps it and the phase's is not full.
  bool has_timeline_room(uint32_t number) {
    return events_ || (keeps_timeline_ && !phase(number).timeline.is_full());
  }
  /// Samples of kernels: below their leaves by the time that these took since `begin_samples`, as
  /// parts of `all`. Those of a kernel without any go below the root of the phase.
  void add_samples(uint32_t phase, std::span<const PcSampleRecord> records, const KernelTimes &all);
  /// Samples of one launch, below its leaf.
  void add_samples(uint32_t phase, const PcSampleRecord &record);
  void begin_samples();
  void end_samples();
  /// A record of a node of a graph that was launched so.
  NodeIndex add_node(uint32_t phase, const LaunchRecord &launch, const GraphPlace &place,
                     const KernelRecord &record);
  NodeIndex add_node(uint32_t phase, const LaunchRecord &launch, const GraphPlace &place,
                     const CopyRecord &record);
  /// A user metric that was added under capture; throws as the next.
  void add_metric(uint32_t phase, const LaunchRecord &launch, const GraphPlace &place,
                  const UserMetric &metric);
  /// Adds a user metric to the node of `at`. Throws Error(kMetric) when it does not fit.
  void add_metric(uint32_t phase, const Capture &at, const UserMetric &metric);

  /// Upstream's formats would show rows that only allocate.
  bool takes_memory() const { return !upstream_shape_; }
  /// What a phase holds of the memory of devices.
  MemoryUse &memory(uint32_t number);
  /// The row of what was allocated there, which `memory` adds to.
  ///   python: of a session without Python frames the innermost line of the program is shown
  NodeIndex memory_node(uint32_t number, ContextId shadow, ContextId python);
  /// The row of what was allocated while the session did not listen.
  NodeIndex unplaced_memory_node(uint32_t number);

  /// Keeps every kernel and copy from now on, kMostRuns at most.
  void keep_runs() { keeps_runs_ = true; }
  std::vector<DeviceRun> take_runs() { return std::exchange(runs_, {}); }

  /// Hardware counters of the device are sampled from now on, until `end_burst`.
  void begin_burst(const char *device_kind, int32_t device_index, int64_t at_ns);
  /// True: the session had as many bursts as it keeps, and dropped every second one.
  ///   phase: the present one of the session.
  bool end_burst(const std::shared_ptr<const CounterBurst> &burst, uint32_t phase);
  /// Null where no counters were sampled.
  CounterLog *counters() { return counters_.get(); }

  /// Samples of the host are part of it from now on. Before the session is active.
  void sample_host() { samples_host_ = true; }
  /// A thread was seen at a place: inside recorded work it is that work's time, else it goes below
  /// "<not recorded>" with its Python frames.
  void add_sample(uint32_t phase, const HostSample &sample);
  bool samples_host() const { return samples_host_; }

  /// Has the session's events handed over from now on; a session without a sink makes none.
  void set_event_sink(std::shared_ptr<EventSink> sink);
  /// Null without a sink.
  SessionEvents *events() const { return events_.get(); }
  /// The node of a scope that is open; kNoNode when the session does not show it.
  NodeIndex scope_node(uint32_t phase, ContextId scope);
  /// The node that stands for a launch of a graph whose nodes are recorded.
  NodeIndex graph_node(uint32_t phase, const LaunchRecord &launch);
  /// Scopes inside a kernel for a sink; empty when the record is not whole.
  std::optional<TimelineLaunch> own_scopes(uint32_t phase, const TimelineRecord &record);

  /// Counts what is lost to the session.
  void lose(const std::string &reason, uint64_t count) { losses_[reason] += count; }
  /// How much, by reason.
  const std::map<std::string, uint64_t> &losses() const { return losses_; }

  /// From when to when the session does not listen: no device was idle for it then.
  void pause(int64_t now_ns) { pauses_.pause(now_ns); }
  void resume(int64_t now_ns) { pauses_.resume(now_ns); }

  /// The tree of a phase, made when it is new, with all that is known so far.
  CallPathTree &tree(uint32_t phase);
  /// Same without what `tree` writes into it.
  const CallPathTree &bare_tree(uint32_t number) { return phase(number).tree; }
  const CallPathTree *find(uint32_t phase) const;
  const ScopeTimeline &timeline(uint32_t number) { return phase(number).timeline; }
  /// Grows with everything that is added to the phase; 0 for an empty one.
  uint64_t revision(uint32_t phase) const;
  /// The time of all kernels, copies and operators of a node itself.
  int64_t time_of(uint32_t phase, NodeIndex node);
  /// Something was added to the tree of the phase from outside.
  void note_change(uint32_t number) { ++phase(number).revision; }
  void drop_phase(uint32_t phase) {
    newest_ = nullptr;
    phases_.erase(phase);
    if (events_)
      events_->forget_phase(phase);
    if (counters_)
      counters_->forget_phase(phase);
  }

  ContextSource source() const { return source_; }
  /// Differs between the sessions of a process.
  uint32_t generation() const { return generation_; }
  /// Whether what upstream's formats show of it is to look as upstream's.
  bool has_upstream_shape() const { return upstream_shape_; }
  /// Whether it matters when scopes began and ended.
  bool wants_times() const { return records_wall_ || events_; }
  /// Scopes have rows with a time of their own, where the host's stands too.
  bool times_scopes() const { return records_wall_; }

private:
  /// A kernel leaf that was found before: its node, and where its samples go.
  struct FoundLeaf {
    uint64_t identity = 0; ///< of the record; 0: free
    ContextId shadow = 0;
    ContextId python = 0;
    uint32_t code = 0; ///< of a graph's node where it was captured
    bool is_node = false;
    NodeIndex node = 0;
    Distribution *times = nullptr;
    DeviceTimes::Leaf *use = nullptr;

    bool is_same(const FoundLeaf &other) const {
      return identity == other.identity && shadow == other.shadow && python == other.python &&
             code == other.code && is_node == other.is_node;
    }
  };
  static constexpr size_t kFoundLeaves = 512; ///< a power of two
  static constexpr size_t kMaxCaptured = 65536;
  static constexpr size_t kUnknownColumn = ~size_t{0};

  struct Phase {
    Phase(const PauseList &pauses, bool samples_host) : devices(pauses) {
      if (samples_host)
        devices.tell(host_idle);
    }
    CallPathTree tree;
    ScopeTimeline timeline;
    HostIdle host_idle;
    OpWork work;
    DeviceTimes devices;
    std::unique_ptr<MemoryUse> memory; ///< null while no change of it is known
    uint64_t revision = 0;
    std::unordered_map<uint64_t, NodeIndex> paths;    ///< (shadow, python) -> node
    std::vector<FoundLeaf> found;                     ///< by hash; the newest of a slot stays
    std::unordered_map<uint64_t, NodeIndex> captured; ///< (node of a launch, place) -> node
    std::vector<int64_t> sampled_ns; ///< time of each node at the newest `begin_samples`
    size_t time_column = kUnknownColumn;
    size_t count_column = kUnknownColumn;

    /// Where the times of a node go; the address stays.
    Distribution &times(NodeIndex node);
    void add_time(NodeIndex node, Distribution &times, int64_t duration_ns);
    void add_time(NodeIndex node, int64_t duration_ns);
    NodeIndex add_copy(NodeIndex parent, const CopyRecord &record, int64_t called_ns);
  };

  /// The kernel that a record is about.
  struct Leaf {
    Name name;
    int32_t device = kNone;
    const VariantRecord *variant = nullptr;
  };

  Phase &phase(uint32_t number);
  /// The node of an operator, an interpreted kernel or a scope that the session shows.
  NodeIndex range_node(Phase &target, RangeKind kind, const Capture &at, int32_t variant);
  /// Adds a kernel, also to what runs beside counters. `place`: see `add_found`.
  NodeIndex add_counted(uint32_t phase, const LaunchRecord &launch, const KernelRecord &record,
                        const GraphPlace *place);
  NodeIndex add_found(uint32_t phase, const LaunchRecord &launch, const KernelRecord &record,
                      const GraphPlace *place);
  /// The entry for the leaf, or the one to take its place.
  static FoundLeaf &slot_for(Phase &phase, const FoundLeaf &wanted);
  Name name_of(const KernelRecord &record) const;
  /// The variant of a kernel that is shown as `shown`.
  static VariantRecord renamed(VariantRecord variant, const KernelRecord &record,
                               const Name &shown);
  /// Gives a kernel the shapes that the hook which named it found, if any.
  bool add_signature(VariantRecord &variant, const ContextNode *named) const;
  NodeIndex kernel_node(Phase &phase, const LaunchRecord &launch, const KernelRecord &record) const;
  NodeIndex graph_leaf(Phase &phase, const LaunchRecord &launch, const GraphPlace &place,
                       const KernelRecord &record) const;
  /// The node below the launch's that stands for the place: "<captured_at>" and its frames.
  NodeIndex captured_node(Phase &phase, const LaunchRecord &launch, const GraphPlace &place) const;
  NodeIndex graph_parent(Phase &phase, const LaunchRecord &launch, const GraphPlace &place) const;
  /// Frames of the path that this session sees, innermost first.
  std::vector<ContextId> frames_of(ContextId shadow, ContextId python) const;
  bool has(ContextSource part) const { return proton::has(source_, part); }
  /// Whether frames of this kind are on the session's paths: Python frames take the place of
  /// scopes, and stand below the tests.
  bool shows(FrameKind kind) const;
  bool shows(const ContextNode &frame) const;
  /// The frame that a launch hook put around a launch to name its kernel; null without one.
  const ContextNode *naming_frame(ContextId at) const;
  template <typename Record>
  void keep_run(uint32_t phase, NodeIndex node, const LaunchRecord &launch, const Record &record);
  NodeIndex leaf_node(Phase &phase, const Capture &above, const Leaf &leaf) const;
  /// The leaf of a kernel that was launched there, whatever ran it.
  NodeIndex any_leaf(Phase &phase, const Capture &at, const char *kernel) const;
  /// The row of a frame.
  NodeIndex child_of(CallPathTree &tree, NodeIndex above, const ContextNode &frame) const;
  NodeIndex node_for(Phase &phase, ContextId shadow, ContextId python) const;
  NodeIndex shadow_node(Phase &phase, ContextId shadow) const;
  NodeIndex host_node(Phase &phase, const Capture &at) const;

  ContextSource source_;
  uint32_t generation_; ///< frames of an earlier generation are not on this session's paths
  bool records_wall_;
  bool keeps_timeline_;
  bool upstream_shape_;
  bool samples_host_ = false;
  bool keeps_runs_ = false;
  std::vector<DeviceRun> runs_;
  std::unique_ptr<SessionEvents> events_;
  std::unique_ptr<CounterLog> counters_; ///< made by the first burst
  PauseList pauses_;
  std::map<std::string, uint64_t> losses_;
  std::map<uint32_t, std::unique_ptr<Phase>> phases_;
  uint32_t newest_number_ = 0; ///< of `newest_`, the phase that nearly every record goes to
  Phase *newest_ = nullptr;
};

} // namespace proton
