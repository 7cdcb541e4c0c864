#include "collector/hip/hip_calls.h"

#include "collector/hip/hip_records.h"
#include "context/thread/current.h"
#include "context/thread/graph_capture.h"

namespace proton {
namespace {

/// HIP has no contexts: one handle says that there is something to wait for.
void *const kAllDevices = reinterpret_cast<void *>(uintptr_t{1});

const char *name_of(const HipDriver &driver, const HipApiCall &call) noexcept {
  if (call.is_host_function)
    return driver.kernel_name(call.function, call.stream);
  return driver.kernel_name(const_cast<void *>(call.function));
}

LaunchKind launch_kind(HipCallKind kind) noexcept {
  return kind == HipCallKind::kKernel ? LaunchKind::kKernel
         : kind == HipCallKind::kCopy ? LaunchKind::kCopy
                                      : LaunchKind::kCopies;
}

} // namespace

bool HipCalls::is_watched(HipCallKind kind) const noexcept {
  bool is_copy = kind == HipCallKind::kCopy || kind == HipCallKind::kCopies;
  return kind == HipCallKind::kKernel || kind == HipCallKind::kGraphLaunch ||
         (is_copy && copies_.load(std::memory_order_relaxed));
}

void HipCalls::note_stream(LaunchThread &thread, void *stream) noexcept {
  LaunchThread::Stream &known = thread.stream;
  bool is_of_thread = reinterpret_cast<uintptr_t>(stream) == hip::kStreamPerThread;
  const void *handle = is_of_thread ? static_cast<const void *>(&thread) : stream;
  if (known.handle != handle)
    known = {handle, streams_.find(handle)};
}

void HipCalls::enter(const HipApiCall &call, uint64_t correlation) noexcept {
  if (call.kind == HipCallKind::kCaptureBegin)
    parts_.table.capture_starting();
  if (!is_watched(call.kind))
    return;
  LaunchThread *thread = this_launch_thread();
  if (!thread) {
    parts_.log.enter({}, LaunchKind::kKernel, 0); // counts it
    return;
  }
  VendorCall vendor{static_cast<uint32_t>(correlation), kAllDevices};
  note_stream(*thread, call.stream);
  thread->is_graph = call.kind == HipCallKind::kGraphLaunch;
  if (thread->is_graph)
    launch_graph(call, vendor, *thread);
  else
    parts_.log.enter(vendor, launch_kind(call.kind), parts_.codes.find(call.function));
}

void HipCalls::launch_graph(const HipApiCall &call, const VendorCall &vendor,
                            LaunchThread &thread) noexcept {
  HipGraphs::Launched launched;
  try {
    if (parts_.log.is_armed())
      launched = parts_.graphs.launch(call.executable);
  } catch (...) { // no memory: a launch of an unknown graph
  }
  thread.dispatches = 0;
  parts_.log.enter(vendor, LaunchKind::kGraph, launched.layout);
  if (launched.is_new_unknown)
    late_graph_.warn();
  try {
    if (thread.launch_id != 0)
      parts_.replays.begin(thread.launch_id, std::move(launched.plan), thread.stream.number);
  } catch (...) { // no memory: its nodes are shown by name
  }
}

uint64_t HipCalls::tag_dispatch() noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread || thread->launch_id == 0)
    return 0;
  DispatchTag tag;
  tag.correlation = static_cast<uint32_t>(thread->launch_id);
  tag.is_graph = thread->is_graph;
  tag.number = thread->is_graph ? thread->dispatches++ : thread->stream.number;
  return tag.pack();
}

void HipCalls::leave(const HipApiCall &call, bool has_failed) noexcept {
  if (call.kind == HipCallKind::kOther)
    return;
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return;
  try {
    if (is_work(call.kind) || call.kind == HipCallKind::kGraphLaunch)
      leave_launch(call, has_failed, *thread);
    else
      change_graphs(call, has_failed, *thread);
  } catch (...) { // no memory: the graph keeps what is known of it
  }
}

void HipCalls::leave_launch(const HipApiCall &call, bool has_failed,
                            LaunchThread &thread) noexcept {
  try {
    if (!has_failed && is_work(call.kind) && parts_.graphs.has_captures())
      add_node(call, thread);
  } catch (...) { // no memory: the node is shown by the name of its kernel
  }
  if (!is_watched(call.kind))
    return;
  if (has_failed && thread.is_graph && thread.launch_id != 0)
    parts_.replays.end(thread.launch_id);
  parts_.log.leave(has_failed);
}

void HipCalls::add_node(const HipApiCall &call, const LaunchThread &thread) {
  uint32_t graph = parts_.graphs.captured_into(call, thread);
  if (graph == 0)
    return;
  LaunchLog::captured();
  bool is_kernel = call.kind == HipCallKind::kKernel;
  uint64_t key = 0;
  if (is_kernel && call.function)
    key = kernel_key(name_of(*driver_, call), call.work_items, call.block);
  parts_.table.node_captured(graph, is_kernel, key, parts_.sink.captured(capture_current()));
}

void HipCalls::add_built_kernel(const HipApiCall &call) {
  uint64_t key = kernel_key(name_of(*driver_, call), call.work_items, call.block);
  parts_.table.node_captured(parts_.graphs.built_graph(call.graph), true, key,
                             parts_.sink.captured(capture_current()));
}

void HipCalls::change_graphs(const HipApiCall &call, bool has_failed, LaunchThread &thread) {
  HipGraphs &graphs = parts_.graphs;
  if (call.kind == HipCallKind::kCaptureEnd) {
    graphs.end_capture(call, has_failed, thread);
    set_open_capture(thread.captures.is_open() ? &thread.captures : nullptr);
    return;
  }
  if (has_failed && call.kind == HipCallKind::kCaptureBegin)
    parts_.table.capture_refused();
  if (has_failed)
    return;
  switch (call.kind) {
  case HipCallKind::kCaptureBegin:
    graphs.begin_capture(call, thread);
    set_open_capture(&thread.captures);
    break;
  case HipCallKind::kGraphClone:
    graphs.clone(call);
    break;
  case HipCallKind::kGraphChild:
    graphs.add_child(call);
    break;
  case HipCallKind::kGraphKernel:
    add_built_kernel(call);
    break;
  case HipCallKind::kGraphDestroy:
    graphs.destroy(call.graph);
    break;
  case HipCallKind::kExecutableMake:
    graphs.make_executable(call);
    break;
  case HipCallKind::kExecutableUpdate:
    graphs.update_executable(call);
    break;
  case HipCallKind::kExecutableDestroy:
    graphs.destroy_executable(call.executable);
    break;
  default:
    break;
  }
}

} // namespace proton
