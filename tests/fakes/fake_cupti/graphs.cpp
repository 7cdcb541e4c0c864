// CUDA graphs: capture, instantiation, replay, update, clones and child graphs.
#include <functional>

#include "library.h"

namespace fake {
namespace {

struct Node {
  uint64_t id = 0;
  uint32_t child = 0; ///< a graph, or 0 for a kernel
  Kernel kernel{};
};

using Nodes = std::vector<Node>;

struct Graphs {
  std::mutex mutex;
  std::atomic<uint32_t> capturing{0}; ///< streams
  std::map<uint32_t, Nodes> graphs;
  std::map<uint32_t, Nodes> executables;
  std::map<uint32_t, uint32_t> captures; ///< graph by stream
  uint32_t next_graph = 1;
  uint64_t next_node = 1;
};

Graphs &graphs() {
  static Graphs *instance = new Graphs;
  return *instance;
}

uint32_t new_graph() {
  std::lock_guard lock(graphs().mutex);
  return graphs().next_graph++;
}

uint64_t new_node() {
  std::lock_guard lock(graphs().mutex);
  return graphs().next_node++;
}

Nodes nodes_of(uint32_t graph) {
  std::lock_guard lock(graphs().mutex);
  return graphs().graphs[graph];
}

void notify(uint32_t cbid, const cupti::GraphData &data) {
  cupti::GraphData copy = data;
  const cupti::ResourceData resource{handle(kContextHandle, 1), nullptr, &copy};
  call_back(cupti::kDomainResource, cbid, &resource);
}

cupti::GraphData about(uint32_t graph) {
  cupti::GraphData data{};
  data.graph = handle(kGraphHandle, graph);
  return data;
}

void add(uint32_t graph, Node node) {
  cupti::GraphData data = about(graph);
  data.node_type = node.child != 0 ? cuda::kNodeGraph : cuda::kNodeKernel;
  notify(cupti::kGraphNodeCreateStarting, data);
  data.node = handle(kNodeHandle, node.id);
  {
    std::lock_guard lock(graphs().mutex);
    graphs().graphs[graph].push_back(node);
  }
  notify(cupti::kGraphNodeCreated, data);
}

/// Clones `nodes` for `clone` and tells the subscriber about each.
Nodes clone_nodes(uint32_t original, uint32_t clone, const Nodes &nodes) {
  Nodes cloned;
  cupti::GraphData data = about(clone);
  data.original_graph = handle(kGraphHandle, original);
  notify(cupti::kGraphCloned, data);
  for (Node node : nodes) {
    cupti::GraphData created = about(clone); // libcupti tells of a clone twice
    data.original_node = handle(kNodeHandle, node.id);
    node.id = new_node();
    data.node = created.node = handle(kNodeHandle, node.id);
    data.node_type = node.child != 0 ? cuda::kNodeGraph : cuda::kNodeKernel;
    created.node_type = data.node_type;
    notify(cupti::kGraphNodeCreated, created);
    notify(cupti::kGraphNodeCloned, data);
    cloned.push_back(node);
  }
  return cloned;
}

/// The kernels of an executable graph: child graphs are cloned into it.
Nodes expand(uint32_t graph, uint32_t executable) {
  Nodes all;
  for (const Node &node : clone_nodes(graph, executable, nodes_of(graph))) {
    if (node.child == 0) {
      all.push_back(node);
      continue;
    }
    const Nodes inner = expand(node.child, executable);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

void emit_trace(uint32_t executable, uint32_t stream, uint32_t correlation) {
  const uint64_t start = library().clock_ns.fetch_add(10'100);
  namespace at = cupti::graph_trace_offset;
  RecordBytes record(cupti::kKindGraphTrace, 1);
  record.set(at::kCorrelation, correlation).set(at::kStart, start).set(at::kEnd, start + 10'000);
  record.set(at::kGraph, executable).set(at::kContext, 1U).set(at::kStream, stream);
  record.emit();
}

} // namespace

bool capture(const Kernel &kernel) {
  if (graphs().capturing.load(std::memory_order_relaxed) == 0)
    return false;
  uint32_t graph = 0;
  {
    std::lock_guard lock(graphs().mutex);
    const auto found = graphs().captures.find(kernel.stream);
    if (found == graphs().captures.end())
      return false;
    graph = found->second;
  }
  add(graph, {new_node(), 0, kernel});
  return true;
}

} // namespace fake

using namespace fake;

FAKE_EXPORT uint32_t fake_cupti_graph_create() {
  const uint32_t graph = new_graph();
  notify(cupti::kGraphCreated, about(graph));
  return graph;
}

FAKE_EXPORT void fake_cupti_capture_begin(uint32_t stream) {
  cuda::StreamBeginCaptureParams parameters{handle(kStreamHandle, stream)};
  DriverCall call(cupti::kCuStreamBeginCaptureV2, "cuStreamBeginCapture_v2", &parameters, 1);
  call.enter();
  const uint32_t graph = fake_cupti_graph_create();
  std::lock_guard lock(graphs().mutex);
  graphs().captures[stream] = graph;
  ++graphs().capturing;
}

FAKE_EXPORT void fake_cupti_capture_join(uint32_t captured, uint32_t joining) {
  std::lock_guard lock(graphs().mutex);
  graphs().captures[joining] = graphs().captures[captured];
  ++graphs().capturing;
}

FAKE_EXPORT uint32_t fake_cupti_capture_end(uint32_t stream) {
  void *answer = nullptr;
  cuda::StreamEndCaptureParams parameters{handle(kStreamHandle, stream), &answer};
  DriverCall call(cupti::kCuStreamEndCapture, "cuStreamEndCapture", &parameters, 1);
  call.enter();
  std::lock_guard lock(graphs().mutex);
  const uint32_t graph = graphs().captures[stream];
  graphs().capturing -= static_cast<uint32_t>(std::erase_if(
      graphs().captures, [graph](const auto &capture) { return capture.second == graph; }));
  answer = handle(kGraphHandle, graph);
  return graph;
}

FAKE_EXPORT uint64_t fake_cupti_graph_add_kernel(uint32_t graph, const char *name,
                                                 uint32_t stream) {
  Kernel kernel{intern(name), 1000, 0, 1, stream, {1, 1, 1}, {32, 1, 1}, 0, 16};
  const uint64_t node = new_node();
  add(graph, {node, 0, kernel});
  return node;
}

FAKE_EXPORT void fake_cupti_graph_add_child(uint32_t graph, uint32_t child) {
  const uint32_t inner = new_graph(); // the node owns a clone
  Nodes cloned = clone_nodes(child, inner, nodes_of(child));
  {
    std::lock_guard lock(graphs().mutex);
    graphs().graphs[inner] = std::move(cloned);
  }
  add(graph, {new_node(), inner, {}});
}

FAKE_EXPORT uint32_t fake_cupti_graph_clone(uint32_t graph) {
  const uint32_t clone = new_graph();
  Nodes cloned = clone_nodes(graph, clone, nodes_of(graph));
  std::lock_guard lock(graphs().mutex);
  graphs().graphs[clone] = std::move(cloned);
  return clone;
}

FAKE_EXPORT uint32_t fake_cupti_graph_instantiate(uint32_t graph) {
  void *answer = nullptr;
  cuda::GraphInstantiateParams parameters{&answer, handle(kGraphHandle, graph)};
  DriverCall call(cupti::kCuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", &parameters,
                  1);
  call.enter();
  notify(cupti::kGraphExecCreateStarting, about(graph));
  const uint32_t executable = new_graph(); // shares the ids of graphs
  Nodes nodes = expand(graph, executable);
  {
    std::lock_guard lock(graphs().mutex);
    graphs().executables[executable] = std::move(nodes);
  }
  cupti::GraphData data = about(graph);
  answer = data.graph_exec = handle(kExecHandle, executable);
  notify(cupti::kGraphExecCreated, data);
  return executable;
}

FAKE_EXPORT void fake_cupti_graph_update(uint32_t executable, uint32_t graph) {
  cuda::GraphExecUpdateParams parameters{handle(kExecHandle, executable),
                                         handle(kGraphHandle, graph)};
  DriverCall call(cupti::kCuGraphExecUpdateV2, "cuGraphExecUpdate_v2", &parameters, 1);
  call.enter();
  const Nodes nodes = nodes_of(graph);
  std::lock_guard lock(graphs().mutex);
  Nodes &present = graphs().executables[executable];
  for (size_t i = 0; i < present.size() && i < nodes.size(); ++i)
    present[i].kernel = nodes[i].kernel;
}

FAKE_EXPORT uint32_t fake_cupti_graph_launch(uint32_t executable, uint32_t stream) {
  cuda::GraphLaunchParams parameters{handle(kExecHandle, executable),
                                     handle(kStreamHandle, stream)};
  DriverCall call(cupti::kCuGraphLaunch, "cuGraphLaunch", &parameters, 1);
  call.enter();
  if (library().kinds[cupti::kKindGraphTrace]) {
    emit_trace(executable, stream, call.correlation());
    return call.correlation();
  }
  Nodes nodes;
  {
    std::lock_guard lock(graphs().mutex);
    nodes = graphs().executables[executable];
  }
  for (const Node &node : nodes)
    emit_kernel(node.kernel, call.correlation(), executable, node.id);
  return call.correlation();
}

FAKE_EXPORT void fake_cupti_graph_destroy(uint32_t graph) {
  DriverCall call(cupti::kCuGraphDestroy, "cuGraphDestroy", nullptr, 1);
  call.enter();
  cupti::GraphData data = about(graph);
  for (const Node &node : nodes_of(graph)) {
    data.node = handle(kNodeHandle, node.id);
    data.node_type = node.child != 0 ? cuda::kNodeGraph : cuda::kNodeKernel;
    notify(cupti::kGraphNodeDestroyStarting, data);
  }
  notify(cupti::kGraphDestroyStarting, about(graph));
  std::lock_guard lock(graphs().mutex);
  graphs().graphs.erase(graph);
}

FAKE_EXPORT void fake_cupti_graph_exec_destroy(uint32_t executable) {
  DriverCall call(cupti::kCuGraphExecDestroy, "cuGraphExecDestroy", nullptr, 1);
  call.enter();
  cupti::GraphData data{};
  data.graph_exec = handle(kExecHandle, executable);
  notify(cupti::kGraphExecDestroyStarting, data);
  std::lock_guard lock(graphs().mutex);
  graphs().executables.erase(executable);
}
