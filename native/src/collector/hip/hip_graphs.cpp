#include "collector/hip/hip_graphs.h"

#include <algorithm>

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

} // namespace proton
