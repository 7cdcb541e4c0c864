#include "collector/cupti/callbacks/graph_source.h"

#include <cstring>

#include "context/thread/current.h"
#include "driver/cuda/cuda_abi.h"

namespace proton {
namespace {

bool begins_capture(uint32_t cbid) noexcept {
  return cbid == cupti::kCuStreamBeginCapture || cbid == cupti::kCuStreamBeginCapturePtsz ||
         cbid == cupti::kCuStreamBeginCaptureV2 || cbid == cupti::kCuStreamBeginCaptureV2Ptsz ||
         cbid == cupti::kCuStreamBeginCaptureToGraph ||
         cbid == cupti::kCuStreamBeginCaptureToGraphPtsz;
}

bool is_ptsz(uint32_t capture_cbid) noexcept {
  return capture_cbid == cupti::kCuStreamBeginCapturePtsz ||
         capture_cbid == cupti::kCuStreamBeginCaptureV2Ptsz ||
         capture_cbid == cupti::kCuStreamBeginCaptureToGraphPtsz ||
         capture_cbid == cupti::kCuStreamEndCapturePtsz;
}

template <typename Function, typename Id>
Id id_of(Function function, void *handle, Id &&none) noexcept {
  Id id = none;
  if (!function || !handle || function(handle, &id) != cupti::kSuccess)
    return none;
  return id;
}

} // namespace

std::vector<uint32_t> GraphCallSource::callbacks() const {
  using namespace cupti;
  return {kCuGraphLaunch,
          kCuGraphLaunchPtsz,
          kCuGraphExecUpdate,
          kCuGraphExecUpdateV2,
          kCuStreamBeginCapture,
          kCuStreamBeginCapturePtsz,
          kCuStreamBeginCaptureV2,
          kCuStreamBeginCaptureV2Ptsz,
          kCuStreamBeginCaptureToGraph,
          kCuStreamBeginCaptureToGraphPtsz,
          kCuStreamEndCapture,
          kCuStreamEndCapturePtsz};
}

void GraphCallSource::handle(uint32_t cbid, const void *data) noexcept {
  const auto &call = *static_cast<const cupti::CallbackData *>(data);
  if (cbid == cupti::kCuGraphLaunch || cbid == cupti::kCuGraphLaunchPtsz) {
    launch(call);
    return;
  }
  if (!call.function_params)
    return;
  try {
    if (call.site != cupti::kExit)
      enter(cbid);
    else if (cbid == cupti::kCuGraphExecUpdate || cbid == cupti::kCuGraphExecUpdateV2)
      update(call);
    else
      capture(cbid, call);
  } catch (...) { // no memory: the graph keeps what is known of it
  }
}

void GraphCallSource::launch(const cupti::CallbackData &call) noexcept {
  if (call.site == cupti::kExit) {
    leave_launch(log_, call);
    return;
  }
  LayoutId layout = 0;
  try {
    if (call.function_params)
      layout =
          layout_of(static_cast<const cuda::GraphLaunchParams *>(call.function_params)->graph_exec);
  } catch (...) { // no memory: a launch of an unknown graph
  }
  enter_launch(log_, call, LaunchKind::kGraph, layout);
}

LayoutId GraphCallSource::layout_of(void *executable) {
  LaunchThread *thread = this_launch_thread();
  if (!thread || !log_.is_armed())
    return 0;
  uint32_t generation = table_.generation();
  auto hash = reinterpret_cast<uintptr_t>(executable) * 0x9E3779B97F4A7C15ull;
  LaunchThread::Graph &known = thread->graphs[(hash >> 40) % thread->graphs.size()];
  if (known.executable == executable && known.generation == generation)
    return known.layout;
  bool is_new_unknown = false;
  LayoutId layout = table_.layout(executable_id(executable), is_new_unknown);
  known = {executable, generation, layout};
  if (is_new_unknown)
    late_graph_.warn();
  return layout;
}

void GraphCallSource::enter(uint32_t cbid) {
  if (begins_capture(cbid))
    table_.capture_starting();
}

void GraphCallSource::capture(uint32_t cbid, const cupti::CallbackData &call) {
  LaunchThread *thread = this_launch_thread();
  if (!thread || (begins_capture(cbid) && has_failed(call))) {
    if (begins_capture(cbid))
      table_.capture_refused();
    return;
  }
  const void *stream =
      static_cast<const cuda::StreamBeginCaptureParams *>(call.function_params)->stream;
  bool is_of_thread = reinterpret_cast<uintptr_t>(stream) == cuda::kStreamPerThread ||
                      (stream == nullptr && is_ptsz(cbid));
  if (is_of_thread)
    stream = thread;
  if (!begins_capture(cbid)) {
    table_.capture_ended(stream);
    set_open_capture(thread->captures.is_open() ? &thread->captures : nullptr);
    return;
  }
  bool is_given = cbid == cupti::kCuStreamBeginCaptureToGraph ||
                  cbid == cupti::kCuStreamBeginCaptureToGraphPtsz;
  uint32_t graph = is_given ? graph_id(static_cast<const cuda::StreamBeginCaptureToGraphParams *>(
                                           call.function_params)
                                           ->graph)
                            : table_.newest_of_thread();
  table_.capture_begun(thread->captures, stream, graph);
  set_open_capture(&thread->captures);
}

void GraphCallSource::note_capture(const void *stream, void *graph) {
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return;
  table_.capture_found(thread->captures, stream, graph_id(graph));
  set_open_capture(&thread->captures);
}

void GraphCallSource::update(const cupti::CallbackData &call) {
  if (has_failed(call))
    return;
  const auto &update = *static_cast<const cuda::GraphExecUpdateParams *>(call.function_params);
  table_.executable_updated(executable_id(update.graph_exec), graph_id(update.graph));
}

uint32_t GraphCallSource::executable_id(void *executable) const noexcept {
  return id_of(library_.load(std::memory_order_acquire)->functions().get_graph_exec_id, executable,
               uint32_t{0});
}

uint32_t GraphCallSource::graph_id(void *graph) const noexcept {
  return id_of(library_.load(std::memory_order_acquire)->functions().get_graph_id, graph,
               uint32_t{0});
}

std::vector<uint32_t> GraphChangeSource::callbacks() const {
  using namespace cupti;
  return {kGraphNodeCreateStarting,  kGraphCreated,
          kGraphDestroyStarting,     kGraphCloned,
          kGraphNodeCreated,         kGraphNodeDestroyStarting,
          kGraphExecCreateStarting,  kGraphExecCreated,
          kGraphExecDestroyStarting, kGraphNodeCloned};
}

void GraphChangeSource::handle(uint32_t cbid, const void *data) noexcept {
  const auto *resource = static_cast<const cupti::ResourceData *>(data);
  const auto *graph = static_cast<const cupti::GraphData *>(resource->descriptor);
  if (!graph)
    return;
  try {
    change(cbid, *graph);
  } catch (...) { // no memory: nodes are shown by the names of their kernels
  }
}

void GraphChangeSource::change(uint32_t cbid, const cupti::GraphData &graph) {
  switch (cbid) {
  case cupti::kGraphCreated:
    table_.graph_created(graph_id(graph.graph));
    break;
  case cupti::kGraphDestroyStarting:
    table_.graph_destroyed(graph_id(graph.graph));
    break;
  case cupti::kGraphCloned:
    table_.graph_cloned(graph_id(graph.graph), graph_id(graph.original_graph));
    break;
  case cupti::kGraphNodeCreated:
    add_node(graph);
    break;
  case cupti::kGraphNodeCreateStarting:
    table_.node_starting(graph_id(graph.graph));
    break;
  case cupti::kGraphNodeCloned:
    table_.node_cloned(graph_id(graph.graph), node_id(graph.node), graph_id(graph.original_graph),
                       node_id(graph.original_node));
    break;
  case cupti::kGraphNodeDestroyStarting:
    table_.node_destroyed(graph_id(graph.graph), node_id(graph.node));
    break;
  case cupti::kGraphExecCreateStarting:
    table_.executable_starting();
    break;
  case cupti::kGraphExecCreated:
    table_.executable_created(
        graph_id(graph.graph),
        id_of(library_.load(std::memory_order_acquire)->functions().get_graph_exec_id,
              graph.graph_exec, uint32_t{0}));
    break;
  case cupti::kGraphExecDestroyStarting:
    table_.executable_destroyed(
        id_of(library_.load(std::memory_order_acquire)->functions().get_graph_exec_id,
              graph.graph_exec, uint32_t{0}));
    break;
  default:
    break;
  }
}

void GraphChangeSource::add_node(const cupti::GraphData &graph) {
  bool is_kernel = LaunchLog::captured(); // libcupti's type of a node says nothing
  table_.node_created(graph_id(graph.graph), node_id(graph.node), is_kernel,
                      sink_.captured(capture_current()));
}

uint32_t GraphChangeSource::graph_id(void *graph) const noexcept {
  return id_of(library_.load(std::memory_order_acquire)->functions().get_graph_id, graph,
               uint32_t{0});
}

uint64_t GraphChangeSource::node_id(void *node) const noexcept {
  return id_of(library_.load(std::memory_order_acquire)->functions().get_graph_node_id, node,
               uint64_t{0});
}

} // namespace proton
