// Timelines on the consuming side: what host threads did, and which call launched what.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "aggregate/consumer/epoch_table.h"
#include "aggregate/events/session_events.h"
#include "aggregate/times/tick_anchors.h"
#include "correlation/graph_launches.h"
#include "correlation/launch_table.h"
#include "record/record.h"
#include "record/record_sink.h"
#include "record/timeline_record.h"

namespace proton {

/// Work of a device that a launch caused.
struct DeviceWork {
  EventKind kind = EventKind::kKernel;
  uint64_t correlation_id = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t stream = 0;
  bool is_of_graph = false;
  uint64_t bytes = 0; ///< of a copy
};

/// What the log of a thread knows of a call that launched.
struct NotedCall {
  uint32_t thread = kNoThread; ///< number
  int64_t tick_ns = 0;         ///< when it was called, of TickClock; 0: unknown
  int64_t returned_ns = 0;     ///< CLOCK_MONOTONIC; 0: unknown
};

/// Not synchronised: the aggregator's lock guards it. Keeps nothing for sessions without a sink for
/// their events.
class EventBook {
public:
  static constexpr const char *kNoRoom = "event of a timeline that found no room";
  static constexpr const char *kNoRoomForScopes =
      "scopes inside kernels that the timeline had no room for";

  EventBook(EpochTable &epochs, const TickAnchors &ticks) : epochs_(epochs), ticks_(ticks) {}

  // From the logs of threads.

  /// A launch was noted; its `called_ns` is converted.
  void add_launch(const LaunchRecord &launch, const Epoch &epoch, const NotedCall &noted);
  /// The call returned, at a converted time.
  void returned(uint64_t correlation_id, int64_t returned_ns);
  /// A launch has scopes inside: they are shown when its kernel's times are known.
  void expect_scopes(uint64_t correlation_id);
  /// A range that became this node of the member's tree; kNoNode: of none.
  void add_range(const RangeRecord &record, const Epoch &epoch, std::span<const NodeIndex> nodes);

  // From devices.

  /// Work that became the leaf of the member's tree; the call shows where its launch stood.
  void add_work(const EpochMember &member, const DeviceWork &work, NodeIndex leaf, NodeIndex call);
  /// Its first work was added to all members.
  void show(uint64_t correlation_id) {
    if (LaunchCall *call = calls_.find(correlation_id))
      call->is_shown = true;
  }
  /// The same, and no more work of the launch will come.
  void end(uint64_t correlation_id) {
    if (calls_.size() == 0)
      return;
    show(correlation_id);
    forget(correlation_id);
  }
  /// No more work of the launch will come, or none came.
  void forget(uint64_t correlation_id) {
    if (calls_.size() != 0)
      close(correlation_id);
  }
  /// The same for all launches for which `is_over` is true.
  template <typename Predicate> void forget_if(Predicate &&is_over) {
    std::vector<uint64_t> over;
    calls_.for_each([&](const LaunchCall &call) {
      if (is_over(call.correlation_id))
        over.push_back(call.correlation_id);
    });
    for (uint64_t id : over)
      close(id);
  }
  /// A launched kernel ran.
  void kernel_ran(uint64_t correlation_id, int64_t start_ns, int64_t end_ns) {
    if (!scoped_.is_empty())
      show(scoped_.kernel_ran(correlation_id, start_ns, end_ns));
  }
  void add_scopes(const EpochMember &member, const TimelineRecord &record);
  /// They were added to all members.
  void end_scopes(uint64_t correlation_id) { scoped_.end_scopes(correlation_id); }

  // For sessions.

  /// The scope of the calling thread whose event shows values given at `at`; empty without one.
  static std::optional<uint64_t> scope_of(const Capture &at);
  /// A value was added to the trees: the event of its scope shows it.
  void add_value(const ValueRecord &record, const UserMetric &metric);
  /// Hands over the events so far. After `drain`.
  void push(const EpochMember &member);
  /// Scopes that are open on any thread are shown until now, in the member's phase. After `drain`,
  /// once, before the lock is released under which the session stops listening: a scope that ends
  /// after that is not shown by its end.
  void add_open_scopes(const EpochMember &member);
  /// Hands over the last events of the member's phase.
  void end_phase(const EpochMember &member);

  /// Forgets launches and values of epochs that are gone.
  void trim();

  /// Sinks that took whole batches since the last call; the writer may be behind.
  std::vector<std::shared_ptr<EventSink>> take_filled() { return std::exchange(filled_, {}); }
  size_t open_calls() const { return calls_.size(); }

private:
  static constexpr size_t kFewestToTrim = 4096;

  void close(uint64_t correlation_id);
  void announce(const EpochMember &member, uint32_t thread);
  /// Shows scopes inside kernels that need not wait any more.
  void show(ScopedLaunches::Released released);
  /// A batch was handed over.
  void handed(const EpochMember &member);
  void count_lost(const EpochMember &member);
  /// Values of the range, if the program gave it some.
  std::optional<EventValues> values_of(const RangeRecord &record);

  EpochTable &epochs_;
  const TickAnchors &ticks_;
  IdTable<LaunchCall> calls_;
  InstanceValues values_;
  ScopedLaunches scoped_;
  std::unordered_map<uint64_t, EventValues> launch_values_; ///< by number of the launch
  std::vector<std::shared_ptr<EventSink>> filled_;
  uint64_t next_launch_ = 1;
  size_t trim_at_ = kFewestToTrim;
};

// Graphs on the consuming side: layouts, launches under way, and where their nodes were captured.

/// The aggregator's lock guards it: what it is as a GraphSink takes that lock, its own functions
/// want it held.
class GraphBook : public GraphSink {
public:
  /// What a GraphSink needs of the aggregator.
  class Owner {
  public:
    virtual ~Owner() = default;
    [[nodiscard]] virtual std::unique_lock<std::mutex> lock() = 0;
    /// Consumes the logs of every thread. [lock held]
    virtual void drain() = 0;
  };

  GraphBook(Owner &owner, EpochTable &epochs, EventBook &events)
      : owner_(owner), epochs_(epochs), events_(events), launches_(captures_) {}

  /// Keeps values that a thread added under capture.
  CaptureId keep_values(const Capture &at, const std::vector<UserMetric> &metrics);
  void add_launch(const LaunchRecord &launch);
  bool is_open(uint64_t correlation_id) { return launches_.find(correlation_id) != nullptr; }
  /// False when it is not the launch of a graph.
  bool retract(uint64_t correlation_id);
  void add_kernel(const KernelRecord &record);
  void add_copy(const CopyRecord &record);
  void count_pending(uint64_t first_id, uint64_t last_id, PendingLaunches &pending);
  /// `known_lost` of the missing records were counted as lost before.
  void settle(const SettledRecord &record, uint64_t known_lost);
  /// Contexts that must not be freed.
  void append_ids(std::vector<ContextId> &ids) const { captures_.append_ids(ids); }
  size_t open_count() const { return launches_.size(); }
  size_t layout_count() const { return launches_.layout_count(); }
  size_t capture_count() const { return captures_.size(); }

private:
  CaptureId captured(const Capture &at) noexcept override;
  void keep(std::span<const CaptureId> captures) noexcept override;
  void give_back(std::span<const CaptureId> captures) noexcept override;
  LayoutId add(GraphLayout layout) noexcept override;
  void retire(LayoutId layout) noexcept override;
  bool has_device_values() noexcept override;
  void skip_device_values() noexcept override;

  /// Adds the record of a node that was captured at a place, if it has times.
  template <typename Record>
  void add_node(const OpenGraph &open, CaptureId at, const Record &record, const char *if_untimed);
  /// Generations of the sessions that were active there.
  std::vector<uint32_t> sessions_of(const Capture &at) const;
  OpenGraph *find(uint64_t correlation_id, bool may_lack_launch);
  void close(uint64_t correlation_id);
  /// Ends launches where a record that was added settles them.
  void proceed(OpenGraph &open);
  /// Ends a launch that waited for more records, unless some of kernels are still missing: the next
  /// flush settles those.
  void end(uint64_t correlation_id);
  /// Counts the launch as recorded and adds what was added under capture.
  void complete(OpenGraph &open);
  void add_metrics(const LaunchRecord &launch, Epoch *epoch, CaptureId metrics);
  /// The values for one launch. Values that a device left are taken; lost ones are left out.
  std::vector<UserMetric> take_values(const CapturedAt &place, Epoch *epoch);
  /// Takes and drops the values that a launch left on its device.
  void discard_values(const OpenGraph &open);
  /// Reads the values that devices left so far, which makes room for more.
  void pull_values(const OpenGraph &open);

  Owner &owner_;
  EpochTable &epochs_;
  EventBook &events_;
  CaptureStore captures_;
  GraphLaunches launches_;
};

} // namespace proton
