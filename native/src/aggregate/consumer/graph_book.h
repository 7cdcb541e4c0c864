// Graphs on the consuming side: layouts, launches under way, and where their nodes were captured.
#pragma once

#include "correlation/capture_store.h"
#include "correlation/graph_launches.h"
#include "record/graph.h"
#include "record/record_sink.h"

namespace proton {

class Aggregator;
struct Epoch;

/// Part of the aggregator, whose mutex guards it: functions of GraphSink take that mutex, the
/// others want it held.
class GraphBook : public GraphSink {
public:
  explicit GraphBook(Aggregator &aggregator) : aggregator_(aggregator), launches_(captures_) {}

  CaptureId captured(const Capture &at) noexcept override;
  void keep(std::span<const CaptureId> captures) noexcept override;
  void give_back(std::span<const CaptureId> captures) noexcept override;
  LayoutId add(GraphLayout layout) noexcept override;
  void retire(LayoutId layout) noexcept override;
  bool has_device_values() noexcept override;
  void skip_device_values() noexcept override;
  /// Values that the calling thread added under capture. Takes the mutex.
  CaptureId captured(const Capture &at, const std::vector<UserMetric> &metrics);

  void add_launch(const LaunchRecord &launch);
  bool is_open(uint64_t correlation_id) { return launches_.find(correlation_id) != nullptr; }
  /// False when it is no launch of a graph.
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
  /// Adds the record of a node that was captured at a place, unless it has no times.
  template <typename Record>
  void add_node(const OpenGraph &open, CaptureId at, const Record &record, const char *if_untimed);
  std::vector<int> sessions_of(const Capture &at) const;
  OpenGraph *find(uint64_t correlation_id, bool may_lack_launch);
  void close(uint64_t correlation_id);
  /// What follows from a record of the launch that is counted and added by now.
  void proceed(OpenGraph &open);
  /// Ends a launch that waited for company, unless records of kernels are still owed: those are
  /// settled by the next flush.
  void end(uint64_t correlation_id);
  /// Counts the launch as recorded and adds what was added under capture.
  void complete(OpenGraph &open);
  void add_metrics(const LaunchRecord &launch, Epoch *epoch, CaptureId metrics);
  /// The values for one launch; those that a device left are taken, and lost ones left out.
  std::vector<UserMetric> take_values(const CapturedAt &place, Epoch *epoch);
  /// Takes what a launch left that is not recorded.
  void discard_values(const OpenGraph &open);
  /// Has devices go on: reads what they left so far.
  void pull_values(const OpenGraph &open);

  Aggregator &aggregator_;
  CaptureStore captures_;
  GraphLaunches launches_;
};

} // namespace proton
