// Launches of graphs that are under way: one launch, many records.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "correlation/capture_store.h"
#include "record/graph.h"

namespace proton {

/// A launch whose records are not all there yet, or to which more may come.
struct OpenGraph {
  LaunchRecord launch;
  struct LayoutEntry *layout = nullptr;
  uint32_t missing = 0;     ///< records of kernels that are still to come; unless it is unknown
  bool has_records = false; ///< some came
  bool is_complete = false; ///< every kernel was recorded; records of copies may follow
  bool is_counted = false;  ///< as recorded
};

struct LayoutEntry {
  GraphLayout layout;
  uint32_t kernels = 0;         ///< records that each launch has
  uint64_t launches = 0;        ///< that are open
  bool is_retired = false;      ///< goes with its last open launch
  size_t newest = 0;            ///< position of the node found last: records come in order
  std::deque<uint64_t> waiting; ///< launches with records, oldest first, of inexact layouts

  const GraphNode *find(uint64_t node);
};

/// Layouts and open launches. Not synchronised: the aggregator's lock guards it.
class GraphLaunches {
public:
  explicit GraphLaunches(CaptureStore &captures) : captures_(captures) {}

  /// 0 if there are too many.
  LayoutId add(GraphLayout layout);
  void retire(LayoutId id);

  /// Opens a launch; the older one of this correlation id, if there is one, must be closed before.
  OpenGraph &open(const LaunchRecord &launch);
  OpenGraph *find(uint64_t correlation_id);
  /// Notes a record of the node and returns where it was captured: 0 where that is unknown.
  CaptureId note(OpenGraph &open, uint64_t node, bool is_kernel);
  /// The oldest launch that need not wait for more records, which is no longer listed; 0: none.
  uint64_t take_settled(OpenGraph &open);
  /// The same among those of retired layouts.
  uint64_t take_settled_retired();
  void close(uint64_t correlation_id);
  template <typename Visit> void for_each(Visit &&visit) {
    for (auto &[id, open] : open_)
      visit(open);
  }
  size_t size() const { return open_.size(); }
  size_t layout_count() const { return layouts_.size(); }

private:
  static constexpr LayoutId kMaxLayouts = 1u << 24;
  /// So many later launches of a graph with records of their own: its older records are all there.
  static constexpr size_t kWaiting = 64;
  /// More than the driver lets wait for a device.
  static constexpr size_t kMaxQueued = 4096;
  static uint64_t pop(std::deque<uint64_t> &ids);

  LayoutEntry &entry(LayoutId id);
  void erase_if_unused(LayoutId id, LayoutEntry &entry);

  CaptureStore &captures_;
  std::unordered_map<LayoutId, std::unique_ptr<LayoutEntry>> layouts_;
  std::deque<uint64_t> retired_; ///< waiting launches whose graph is gone, oldest first
  LayoutEntry unknown_;          ///< of launches whose layout is unknown
  LayoutId next_ = 1;
  std::unordered_map<uint64_t, OpenGraph> open_;
};

} // namespace proton
