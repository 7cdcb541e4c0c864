// HIP graphs: capture, instantiation, replay, update, clones and child graphs.
#include <algorithm>
#include <memory>

#include "device.h"
#include "graphs.h"
#include "handles.h"

namespace fake {

Graphs &graphs() {
  static Graphs *instance = new Graphs;
  return *instance;
}

namespace {

/// The functions below are called with the lock of the graphs held.
uint32_t create_locked() {
  const uint32_t graph = graphs().next_graph++;
  graphs().graphs[graph];
  return graph;
}

GraphNode &put_locked(uint32_t graph, GraphNode node) {
  node.id = graphs().next_node++;
  graphs().graphs[graph].push_back(node);
  return graphs().graphs[graph].back();
}

void clone_locked(uint32_t original, uint32_t clone) {
  const std::vector<GraphNode> nodes = graphs().graphs[original];
  for (GraphNode node : nodes) {
    if (node.child != 0) {
      const uint32_t child = create_locked();
      clone_locked(node.child, child);
      node.child = child;
    }
    put_locked(clone, node);
  }
}

void append_kernels_locked(uint32_t graph, std::vector<Kernel> &kernels) {
  for (const GraphNode &node : graphs().graphs[graph]) {
    if (node.child != 0)
      append_kernels_locked(node.child, kernels);
    else
      kernels.push_back(node.kernel);
  }
}

} // namespace

bool capture(const Kernel &kernel) {
  if (graphs().capturing.load(std::memory_order_relaxed) == 0)
    return false;
  std::lock_guard lock(graphs().mutex);
  const auto found = graphs().captures.find(kernel.stream);
  if (found == graphs().captures.end())
    return false;
  GraphNode node;
  node.kernel = kernel;
  put_locked(found->second, node);
  return true;
}

void *capture_graph(const void *stream) {
  std::lock_guard lock(graphs().mutex);
  const auto found = graphs().captures.find(stream_number(stream));
  return found == graphs().captures.end() ? nullptr : handle(kGraphHandle, found->second);
}

} // namespace fake

using namespace fake;

FAKE_EXPORT uint32_t fake_amd_graph_create() {
  std::lock_guard lock(graphs().mutex);
  return create_locked();
}

FAKE_EXPORT void fake_amd_capture_begin(uint32_t stream) {
  TracedCall traced(CallKind::kBeginCapture);
  traced.call.stream = stream_handle(stream);
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  graphs().captures[stream] = create_locked();
  graphs().capturing = static_cast<uint32_t>(graphs().captures.size());
}

FAKE_EXPORT void fake_amd_capture_join(uint32_t captured, uint32_t joining) {
  std::lock_guard lock(graphs().mutex);
  graphs().captures[joining] = graphs().captures[captured];
  graphs().capturing = static_cast<uint32_t>(graphs().captures.size());
}

FAKE_EXPORT uint32_t fake_amd_capture_end(uint32_t stream) {
  void *answer = nullptr;
  TracedCall traced(CallKind::kEndCapture);
  traced.call.stream = stream_handle(stream);
  traced.call.out = &answer;
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  const uint32_t graph = graphs().captures[stream];
  std::erase_if(graphs().captures,
                [graph](const auto &capture) { return capture.second == graph; });
  graphs().capturing = static_cast<uint32_t>(graphs().captures.size());
  answer = handle(kGraphHandle, graph);
  return graph;
}

FAKE_EXPORT void fake_amd_graph_add_kernel(uint32_t graph, const char *name) {
  Kernel kernel = kernel_of(name);
  kernel.duration_ns = 1000;
  kernel.stream = 7;
  void *answer = nullptr;
  TracedCall traced(CallKind::kAddKernel);
  traced.call.graph = handle(kGraphHandle, graph);
  traced.call.function = const_cast<char *>(kernel.name);
  traced.call.out = &answer;
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  GraphNode node;
  node.kernel = kernel;
  answer = handle(kNodeHandle, put_locked(graph, node).id);
}

FAKE_EXPORT void fake_amd_graph_add_child(uint32_t graph, uint32_t child) {
  void *answer = nullptr;
  TracedCall traced(CallKind::kAddChild);
  traced.call.graph = handle(kGraphHandle, graph);
  traced.call.exec = handle(kGraphHandle, child);
  traced.call.out = &answer;
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  GraphNode node;
  node.child = create_locked(); // the node owns a clone
  clone_locked(child, node.child);
  answer = handle(kNodeHandle, put_locked(graph, node).id);
}

FAKE_EXPORT uint32_t fake_amd_graph_clone(uint32_t graph) {
  void *answer = nullptr;
  TracedCall traced(CallKind::kGraphClone);
  traced.call.graph = handle(kGraphHandle, graph);
  traced.call.out = &answer;
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  const uint32_t clone = create_locked();
  clone_locked(graph, clone);
  answer = handle(kGraphHandle, clone);
  return clone;
}

FAKE_EXPORT uint32_t fake_amd_graph_instantiate(uint32_t graph) {
  void *answer = nullptr;
  TracedCall traced(CallKind::kInstantiate);
  traced.call.graph = handle(kGraphHandle, graph);
  traced.call.out = &answer;
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  const uint32_t executable = graphs().next_exec++;
  append_kernels_locked(graph, graphs().executables[executable]);
  answer = handle(kExecHandle, executable);
  return executable;
}

FAKE_EXPORT void fake_amd_graph_update(uint32_t executable, uint32_t graph) {
  TracedCall traced(CallKind::kGraphUpdate);
  traced.call.exec = handle(kExecHandle, executable);
  traced.call.graph = handle(kGraphHandle, graph);
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  std::vector<Kernel> kernels;
  append_kernels_locked(graph, kernels);
  graphs().executables[executable] = kernels;
}

FAKE_EXPORT uint64_t fake_amd_graph_launch(uint32_t executable, uint32_t stream) {
  TracedCall traced(CallKind::kGraphLaunch);
  traced.call.exec = handle(kExecHandle, executable);
  traced.call.stream = stream_handle(stream);
  traced.enter();
  std::vector<Kernel> kernels;
  {
    std::lock_guard lock(graphs().mutex);
    kernels = graphs().executables[executable];
  }
  if (device().is_backwards)
    std::reverse(kernels.begin(), kernels.end());
  for (const Kernel &kernel : kernels) {
    Activity activity;
    activity.kernel = kernel;
    activity.correlation = traced.call.correlation;
    activity.is_in_graph = true;
    run_on_device(activity, kernel.duration_ns);
  }
  return traced.call.correlation;
}

FAKE_EXPORT void fake_amd_graph_destroy(uint32_t graph) {
  TracedCall traced(CallKind::kGraphDestroy);
  traced.call.graph = handle(kGraphHandle, graph);
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  graphs().graphs.erase(graph);
}

FAKE_EXPORT void fake_amd_graph_exec_destroy(uint32_t executable) {
  TracedCall traced(CallKind::kExecDestroy);
  traced.call.exec = handle(kExecHandle, executable);
  traced.enter();
  std::lock_guard lock(graphs().mutex);
  graphs().executables.erase(executable);
}

FAKE_EXPORT void fake_amd_graph_order(int order) { device().is_backwards = order != 0; }
