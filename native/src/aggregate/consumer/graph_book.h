// Graphs on the consuming side: layouts, launches under way, and where their nodes were captured.
#pragma once

#include <mutex>

#include "aggregate/consumer/epoch_table.h"
#include "aggregate/consumer/event_book.h"
#include "correlation/capture_store.h"
#include "correlation/graph_launches.h"
#include "record/graph.h"
#include "record/record_sink.h"

namespace proton {

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
