// Callbacks about graphs: how they are made, captured and launched.
//
// Recorded on an H200 with libcupti 12.8.1 (tests/data/cupti, docs/explanation/graphs.md):
// - An executable graph is a clone with a graph id of its own, which is also cuptiGetGraphExecId
//   and the graph of kernel records, which name the nodes of that clone.
// - A node of a clone is reported by GRAPHNODE_CREATED and then GRAPHNODE_CLONED. GRAPH_CLONED
//   comes for cuGraphClone only, after the nodes.
// - Child graphs are inlined between GRAPHEXEC_CREATE_STARTING and _CREATED: their node and graph
//   are destroyed, and their nodes get the next ids of the executable graph without a callback.
// - A copy node may be replaced in the same interval: one is created, the old one destroyed, and
//   records go on naming the old one.
// - The type of a node is 0, that of kernels, whatever the node is.
#pragma once

#include <atomic>
#include <cstdint>

#include "collector/cupti/callbacks/callbacks.h"
#include "collector/gpu/work/graph_table.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

/// Driver calls about graphs, and how graphs and nodes are created and destroyed.
class GraphSource : public CallbackListener {
public:
  /// Launches, captures and updates, of the domain of driver calls.
  static constexpr uint32_t kCalls[] = {cupti::kCuGraphLaunch,
                                        cupti::kCuGraphLaunchPtsz,
                                        cupti::kCuGraphExecUpdate,
                                        cupti::kCuGraphExecUpdateV2,
                                        cupti::kCuStreamBeginCapture,
                                        cupti::kCuStreamBeginCapturePtsz,
                                        cupti::kCuStreamBeginCaptureV2,
                                        cupti::kCuStreamBeginCaptureV2Ptsz,
                                        cupti::kCuStreamBeginCaptureToGraph,
                                        cupti::kCuStreamBeginCaptureToGraphPtsz,
                                        cupti::kCuStreamEndCapture,
                                        cupti::kCuStreamEndCapturePtsz};
  /// Of the domain of resources.
  static constexpr uint32_t kEvents[] = {
      cupti::kGraphNodeCreateStarting,  cupti::kGraphCreated,
      cupti::kGraphDestroyStarting,     cupti::kGraphCloned,
      cupti::kGraphNodeCreated,         cupti::kGraphNodeDestroyStarting,
      cupti::kGraphExecCreateStarting,  cupti::kGraphExecCreated,
      cupti::kGraphExecDestroyStarting, cupti::kGraphNodeCloned};

  GraphSource(LaunchLog &log, GraphSink &sink, GraphTable &table)
      : log_(log), sink_(sink), table_(table) {}
  void handle(int domain, uint32_t cbid, const void *data) noexcept override;

  /// A callback of an earlier start may still run.
  void set_library(const CuptiLibrary *library) noexcept { library_ = library; }
  /// A stream of the calling thread whose capture began before the collector started.
  void note_capture(const void *stream, void *graph);
  /// Warns once more, on stderr, of graphs that were captured before.
  void warn_again() noexcept { late_graph_.warn_again(); }

private:
  void call(uint32_t cbid, const cupti::CallbackData &call);
  void launch(const cupti::CallbackData &call) noexcept;
  void capture(uint32_t cbid, const cupti::CallbackData &call);
  void update(const cupti::CallbackData &call);
  void change(uint32_t cbid, const cupti::GraphData &graph);
  LayoutId layout_of(void *executable);
  uint32_t executable_id(void *executable) const noexcept;
  uint32_t graph_id(void *graph) const noexcept;
  uint64_t node_id(void *node) const noexcept;
  const CuptiFunctions &functions() const noexcept {
    return library_.load(std::memory_order_acquire)->functions();
  }

  LaunchLog &log_;
  GraphSink &sink_;
  GraphTable &table_;
  std::atomic<const CuptiLibrary *> library_{nullptr};
  LateGraph late_graph_{"CUDA"};
};

} // namespace proton
