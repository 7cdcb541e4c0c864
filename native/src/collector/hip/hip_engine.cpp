#include "collector/hip/hip_engine.h"

#include <pthread.h>

#include <algorithm>
#include <string>

#include "collector/hip/hip_records.h"
#include "context/thread/current.h"
#include "driver/own_work.h"
#include "support/error.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

/// The graph that a stream captures into; null: it does not, or HIP does not say.
void *captured_graph(const HipDriver &driver, void *stream) noexcept {
  int status = hip::kCaptureNone;
  unsigned long long id = 0;
  void *graph = nullptr;
  auto ask = driver.functions().stream_get_capture_info;
  bool is_known = ask && ask(stream, &status, &id, &graph, nullptr, nullptr) == hip::kSuccess;
  return is_known && status == hip::kCaptureActive ? graph : nullptr;
}

/// How many nodes HIP says there are; false where it does not say.
bool count_nodes(const HipDriver &driver, void *graph, size_t &count) noexcept {
  auto ask = driver.functions().graph_get_nodes;
  return ask && ask(graph, nullptr, &count) == hip::kSuccess;
}

const void *stream_of(const HipApiCall &call, const LaunchThread &thread) noexcept {
  bool is_of_thread = reinterpret_cast<uintptr_t>(call.stream) == hip::kStreamPerThread;
  return is_of_thread ? static_cast<const void *>(&thread) : call.stream;
}

} // namespace

void HipGraphs::begin_capture(const HipApiCall &call, LaunchThread &thread) {
  Lock lock(mutex_);
  void *handle = call.graph ? call.graph : captured_graph(*driver_, call.stream);
  uint32_t graph = call.graph ? number_of(call.graph) : 0;
  if (graph == 0) {
    graph = next_id_++;
    table_.graph_created(graph);
  }
  if (call.graph)
    graphs_[call.graph] = graph;
  const void *stream = stream_of(call, thread);
  std::erase_if(captures_, [&](const Capture &each) { return each.stream == stream; });
  captures_.push_back({stream, graph, handle});
  open_.store(captures_.size(), std::memory_order_relaxed);
  table_.capture_begun(thread.captures, stream, graph);
}

void HipGraphs::end_capture(const HipApiCall &call, bool has_failed, LaunchThread &thread) {
  Lock lock(mutex_);
  const void *stream = stream_of(call, thread);
  table_.capture_ended(stream);
  auto begun = std::find_if(captures_.begin(), captures_.end(),
                            [&](const Capture &each) { return each.stream == stream; });
  if (begun == captures_.end())
    return; // begun before a session listened
  void *handle = call.made && !has_failed ? *call.made : nullptr;
  if (handle)
    graphs_[handle] = begun->graph;
  else
    table_.graph_destroyed(begun->graph);
  captures_.erase(begun);
  open_.store(captures_.size(), std::memory_order_relaxed);
}

uint32_t HipGraphs::captured_into(const HipApiCall &call, const LaunchThread &thread) {
  Lock lock(mutex_);
  const void *stream = stream_of(call, thread);
  // A stream that waits for an event of a capturing one captures too: HIP says into which graph.
  void *handle = captured_graph(*driver_, call.stream);
  for (const Capture &each : captures_)
    if (each.stream == stream || (handle && each.handle == handle))
      return each.graph;
  return 0;
}

uint32_t HipGraphs::number_of(void *graph) const {
  auto found = graphs_.find(graph);
  return found == graphs_.end() ? 0 : found->second;
}

uint32_t HipGraphs::built_graph(void *graph) {
  Lock lock(mutex_);
  uint32_t &number = graphs_[graph];
  if (number == 0) {
    number = next_id_++;
    table_.graph_created(number);
  }
  return number;
}

void HipGraphs::clone(const HipApiCall &call) {
  Lock lock(mutex_);
  uint32_t original = number_of(call.graph);
  if (original == 0 || !call.made || !*call.made)
    return;
  uint32_t graph = next_id_++;
  graphs_[*call.made] = graph;
  table_.graph_created(graph);
  table_.graph_copied(graph, original);
}

void HipGraphs::add_child(const HipApiCall &call) {
  uint32_t graph = built_graph(call.graph);
  Lock lock(mutex_);
  table_.graph_copied(graph, number_of(call.child));
}

void HipGraphs::destroy(void *graph) {
  Lock lock(mutex_);
  if (uint32_t number = number_of(graph))
    table_.graph_destroyed(number);
  graphs_.erase(graph);
}

void HipGraphs::make_executable(const HipApiCall &call) {
  if (!call.made || !*call.made)
    return;
  Lock lock(mutex_);
  Executable &executable = executables_[*call.made];
  executable = {};
  executable.id = next_id_++;
  define(executable, number_of(call.graph), call.graph);
}

void HipGraphs::define(Executable &executable, uint32_t original, void *handle) {
  if (original == 0)
    return; // made before a session listened: its first launch says so
  // Nodes of some kinds are added by calls that are not watched.
  size_t count = 0;
  bool knows_all = count_nodes(*driver_, handle, count) && count == table_.node_count(original);
  table_.executable_made(original, executable.id, knows_all);
  auto plan = std::make_shared<GraphPlan>();
  plan->kernels = table_.kernel_keys(executable.id);
  plan->is_exact = knows_all && plan->kernels.size() == table_.node_count(executable.id);
  executable.plan = std::move(plan);
}

void HipGraphs::update_executable(const HipApiCall &call) {
  Lock lock(mutex_);
  auto found = executables_.find(call.executable);
  uint32_t graph = number_of(call.graph);
  if (found == executables_.end() || graph == 0)
    return; // it keeps what is known of it
  table_.executable_updated(found->second.id, graph);
  if (!found->second.plan)
    return;
  auto plan = std::make_shared<GraphPlan>(*found->second.plan); // launches may be under way
  plan->kernels = table_.kernel_keys(found->second.id);
  plan->order.clear();
  found->second.plan = std::move(plan);
}

void HipGraphs::destroy_executable(void *executable) {
  Lock lock(mutex_);
  auto found = executables_.find(executable);
  if (found == executables_.end())
    return;
  table_.executable_destroyed(found->second.id);
  table_.graph_destroyed(found->second.id);
  executables_.erase(found);
}

HipGraphs::Launched HipGraphs::launch(void *handle) {
  Lock lock(mutex_);
  Executable &executable = executables_[handle];
  if (executable.id == 0)
    executable.id = next_id_++;
  Launched launched;
  launched.layout = table_.layout(executable.id, launched.is_new_unknown);
  launched.plan = executable.plan;
  return launched;
}

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

namespace {

std::atomic<bool> g_is_forked{false};

} // namespace

bool is_forked_from_collector() noexcept { return g_is_forked.load(std::memory_order_relaxed); }

void watch_forks() noexcept {
  static const int watched = pthread_atfork(nullptr, nullptr, [] {
    g_is_forked.store(true);
    set_open_capture(nullptr); // its locks are the parent's
    forget_captures_after_fork();
  });
  static_cast<void>(watched);
}

void refuse_forked(const char *library) {
  if (is_forked_from_collector())
    throw Error(ErrorCode::kUnavailable,
                std::string(library) +
                    " does not work in a child that was forked while its parent was profiled; "
                    "start the child by spawn or exec");
}

void HipEngine::open_hip(const HipOptions &options) {
  if (driver)
    return;
  driver = HipDriver::open(options.hip_candidates);
  hip_devices.emplace(*driver);
  hip_graphs.set_driver(&*driver);
  calls.set_driver(&*driver);
  records.devices().set_source(&*hip_devices);
}

void HipEngine::arm(const HipOptions &options, ClockPairs::Read read_clock, const void *library) {
  TickClock::calibrate(); // launches are stamped with it
  records.start_clock(read_clock, library);
  calls.set_copies(options.copies);
  records.set_copies(options.copies);
  calls.warn_again();
  wants_ranges.store(options.roctx);
  launches.arm();
  is_running = true;
}

void HipEngine::wait_for_devices() noexcept {
  OwnWork own; // the calls are ours
  try {
    // Asked before anything ran, HIP would start in a process that may never use it.
    if (!launches.contexts().list().empty())
      driver->synchronize(); // a device that fails has nothing left to wait for
  } catch (...) {            // no memory: only the records are waited for
  }
}

void HipEngine::flush(RecordSource &source) {
  Delivered delivered = deliver(sink, source);
  if (!delivered.is_waited)
    return; // what has no record yet may still run: a later flush settles it
  replays.end_up_to(delivered.newest);
  uint64_t dropped = records.take_dropped();
  sink.settled({CorrelationIds::kFirst, delivered.newest, dropped != 0, dropped});
}

void HipEngine::disarm(RecordSource &source) {
  flusher.stop();
  deliver(sink, source);
  launches.disarm();
  wants_ranges.store(false);
  wait_for_open_calls(kOpenCallsMs);
  source.hand_over_records();
  records.end_clock();
  launches.contexts().forget_all();
  replays.end_up_to(CorrelationIds::kLast);
  sink.settled({CorrelationIds::kFirst, CorrelationIds::kLast, true, records.take_dropped()});
  is_running = false;
}

void HipEngine::range(uint32_t operation, const char *message) noexcept {
  if (!wants_ranges.load(std::memory_order_relaxed) || is_forked_from_collector())
    return;
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return;
  try {
    if (operation == roctx::kRangePush)
      thread->markers.push(nullptr, message && *message ? message : "<roctx range>");
    else if (operation == roctx::kRangePop)
      thread->markers.pop(nullptr);
  } catch (...) { // no memory: the range is lost, and its end may end another one
  }
}

} // namespace proton
