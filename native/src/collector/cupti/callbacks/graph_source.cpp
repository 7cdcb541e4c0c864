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

void GraphSource::handle(int domain, uint32_t cbid, const void *data) noexcept {
  try {
    if (domain == cupti::kDomainDriver)
      call(cbid, *static_cast<const cupti::CallbackData *>(data));
    else if (const auto *graph = static_cast<const cupti::GraphData *>(
                 static_cast<const cupti::ResourceData *>(data)->descriptor))
      change(cbid, *graph);
  } catch (...) { // no memory: the graph keeps what is known of it, and nodes the names of kernels
  }
}

void GraphSource::call(uint32_t cbid, const cupti::CallbackData &call) {
  if (cbid == cupti::kCuGraphLaunch || cbid == cupti::kCuGraphLaunchPtsz)
    launch(call);
  else if (!call.function_params)
    return;
  else if (call.site == cupti::kExit &&
           (cbid == cupti::kCuGraphExecUpdate || cbid == cupti::kCuGraphExecUpdateV2))
    update(call);
  else if (call.site == cupti::kExit)
    capture(cbid, call);
  else if (begins_capture(cbid))
    table_.capture_starting();
}

void GraphSource::launch(const cupti::CallbackData &call) noexcept {
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

LayoutId GraphSource::layout_of(void *executable) {
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

void GraphSource::capture(uint32_t cbid, const cupti::CallbackData &call) {
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

void GraphSource::note_capture(const void *stream, void *graph) {
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return;
  table_.capture_found(thread->captures, stream, graph_id(graph));
  set_open_capture(&thread->captures);
}

void GraphSource::update(const cupti::CallbackData &call) {
  if (has_failed(call))
    return;
  const auto &update = *static_cast<const cuda::GraphExecUpdateParams *>(call.function_params);
  table_.executable_updated(executable_id(update.graph_exec), graph_id(update.graph));
}

uint32_t GraphSource::executable_id(void *executable) const noexcept {
  return id_of(functions().get_graph_exec_id, executable, uint32_t{0});
}

uint32_t GraphSource::graph_id(void *graph) const noexcept {
  return id_of(functions().get_graph_id, graph, uint32_t{0});
}

uint64_t GraphSource::node_id(void *node) const noexcept {
  return id_of(functions().get_graph_node_id, node, uint64_t{0});
}

void GraphSource::change(uint32_t cbid, const cupti::GraphData &graph) {
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
    // libcupti's type of a node says nothing of whether it is a kernel.
    table_.node_created(graph_id(graph.graph), node_id(graph.node), LaunchLog::captured(),
                        sink_.captured(capture_current()));
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
    table_.executable_created(graph_id(graph.graph), executable_id(graph.graph_exec));
    break;
  case cupti::kGraphExecDestroyStarting:
    table_.executable_destroyed(executable_id(graph.graph_exec));
    break;
  default:
    break;
  }
}

} // namespace proton
