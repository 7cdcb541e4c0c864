// CUDA graphs: capture, instantiation, replay, update, clones and child graphs. Callbacks and ids
// are those that libcupti 12.8.1 was recorded with on an H200 (tests/data/cupti: graph,
// graph_changes): see native/src/collector/cupti/callbacks/graph_source.h. Which calls end a
// capture was tried with driver 13.0 on an H100: waiting for a context does in any mode, from any
// thread; the calls that CUDA names potentially unsafe do where the modes of the capture and of
// their thread say so. No call of libcupti does.
#include <set>
#include <thread>

#include "library.h"

namespace fake {
namespace {

struct Node {
  uint64_t id = 0;
  uint32_t child = 0; ///< a graph, or 0 for a kernel
  Kernel kernel{};
};

using Nodes = std::vector<Node>;

struct Graph {
  Nodes nodes;
  uint32_t next_node = 0;
};

struct Capturing {
  uint32_t graph = 0; ///< 0: it was broken
  int mode = 0;       ///< 0 global, 1 thread_local, 2 relaxed
  std::thread::id thread;
};

struct Graphs {
  std::mutex mutex;
  std::atomic<uint32_t> capturing{0}; ///< streams
  std::map<uint32_t, Graph> graphs;   ///< also those of executable graphs, by the same ids
  std::set<uint32_t> traced; ///< executable graphs that were made while launches are recorded whole
  std::map<uint32_t, uint32_t> inner; ///< executable graph -> a second copy, which the driver keeps
  std::map<uint32_t, Capturing> captures; ///< by stream
  uint64_t broken = 0;                    ///< captures so far
  uint32_t next_graph = 1;
};

Graphs &graphs() {
  static Graphs *instance = new Graphs;
  return *instance;
}

bool is_traced(uint32_t executable) {
  std::lock_guard lock(graphs().mutex);
  return graphs().traced.contains(executable);
}

Nodes nodes_of(uint32_t graph) {
  std::lock_guard lock(graphs().mutex);
  return graphs().graphs[graph].nodes;
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

cupti::GraphData about(uint32_t graph, const Node &node) {
  cupti::GraphData data = about(graph);
  data.node = node_handle(node.id);
  data.node_type = 0; // whatever the node is
  return data;
}

uint32_t create() {
  uint32_t graph = 0;
  {
    std::lock_guard lock(graphs().mutex);
    graph = graphs().next_graph++;
    graphs().graphs[graph];
  }
  notify(cupti::kGraphCreated, about(graph));
  return graph;
}

/// Gives the node its id and puts it into the graph.
uint64_t put(uint32_t graph, Node node) {
  std::lock_guard lock(graphs().mutex);
  Graph &in = graphs().graphs[graph];
  node.id = uint64_t{graph} << 32 | in.next_node++;
  in.nodes.push_back(node);
  return node.id;
}

uint64_t add(uint32_t graph, Node node) {
  notify(cupti::kGraphNodeCreateStarting, about(graph));
  node.id = put(graph, node);
  notify(cupti::kGraphNodeCreated, about(graph, node));
  return node.id;
}

/// Copies nodes, and the graphs of child nodes before them; reports each copy twice.
void clone_nodes(uint32_t original, uint32_t clone) {
  for (Node node : nodes_of(original)) {
    const uint64_t original_node = node.id;
    notify(cupti::kGraphNodeCreateStarting, about(clone));
    if (node.child != 0) {
      const uint32_t child = create();
      clone_nodes(node.child, child);
      node.child = child;
    }
    node.id = put(clone, node);
    cupti::GraphData data = about(clone, node);
    notify(cupti::kGraphNodeCreated, data);
    data.original_graph = handle(kGraphHandle, original);
    data.original_node = node_handle(original_node);
    notify(cupti::kGraphNodeCloned, data);
  }
}

/// Copies nodes into the driver's own copy of an executable graph; reports half of it.
void copy_inner(uint32_t original, uint32_t copy) {
  for (Node node : nodes_of(original)) {
    notify(cupti::kGraphNodeCreateStarting, about(copy));
    const bool is_child = node.child != 0;
    if (is_child) {
      const uint32_t child = create();
      copy_inner(node.child, child);
      node.child = child;
    }
    node.id = put(copy, node);
    if (is_child)
      notify(cupti::kGraphNodeCreated, about(copy, node));
  }
}

void append_kernels(uint32_t graph, Nodes &kernels) {
  for (const Node &node : nodes_of(graph))
    if (node.child == 0)
      kernels.push_back(node);
  for (const Node &node : nodes_of(graph))
    if (node.child != 0)
      append_kernels(node.child, kernels);
}

/// The nodes of child graphs become nodes of `graph`, without a report.
void inline_children(uint32_t graph) {
  for (const Node &node : nodes_of(graph)) {
    if (node.child == 0)
      continue;
    notify(cupti::kGraphNodeDestroyStarting, about(graph, node));
    Nodes kernels;
    append_kernels(node.child, kernels);
    {
      std::lock_guard lock(graphs().mutex);
      std::erase_if(graphs().graphs[graph].nodes,
                    [&](const Node &each) { return each.id == node.id; });
    }
    for (const Node &kernel : kernels)
      put(graph, kernel);
    notify(cupti::kGraphDestroyStarting, about(node.child));
    std::lock_guard lock(graphs().mutex);
    graphs().graphs.erase(node.child);
  }
}

void destroy(uint32_t graph) {
  notify(cupti::kGraphDestroyStarting, about(graph));
  for (const Node &node : nodes_of(graph)) {
    notify(cupti::kGraphNodeDestroyStarting, about(graph, node));
    if (node.child != 0)
      destroy(node.child);
  }
  std::lock_guard lock(graphs().mutex);
  graphs().graphs.erase(graph);
}

void emit_trace(uint32_t executable, uint32_t stream, uint32_t correlation) {
  const uint64_t start = library().clock_ns.fetch_add(10'100);
  namespace at = cupti::graph_trace_offset;
  RecordBytes record(cupti::kKindGraphTrace, 1);
  record.set(at::kCorrelation, correlation).set(at::kStart, start).set(at::kEnd, start + 10'000);
  record.set(at::kGraph, executable).set(at::kContext, 1U).set(at::kStream, stream);
  record.emit();
}

/// Breaks the captures for which the condition holds; returns whether there were any.
template <typename Condition> bool break_captures(Condition is_broken) {
  std::lock_guard lock(graphs().mutex);
  bool has_any = false;
  for (auto &[stream, capture] : graphs().captures) {
    if (!is_broken(capture))
      continue;
    graphs().broken += capture.graph == 0 ? 0 : 1;
    capture.graph = 0;
    has_any = true;
  }
  return has_any;
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
    graph = found->second.graph;
  }
  add(graph, {0, 0, kernel});
  return true;
}

} // namespace fake

using namespace fake;

FAKE_EXPORT uint32_t fake_cupti_graph_create() { return create(); }

FAKE_EXPORT void fake_cupti_capture_begin(uint32_t stream) {
  fake_cupti_capture_begin_as(stream, 0);
}

FAKE_EXPORT void fake_cupti_capture_begin_as(uint32_t stream, int mode) {
  cuda::StreamBeginCaptureParams parameters{handle(kStreamHandle, stream)};
  DriverCall call(cupti::kCuStreamBeginCaptureV2, "cuStreamBeginCapture_v2", &parameters, 1);
  call.enter();
  const uint32_t graph = create();
  std::lock_guard lock(graphs().mutex);
  graphs().captures[stream] = {graph, mode, std::this_thread::get_id()};
  graphs().capturing = static_cast<uint32_t>(graphs().captures.size());
}

FAKE_EXPORT void fake_cupti_break_captures(int *were_open) {
  *were_open = break_captures([](const Capturing &) { return true; }) ? 1 : 0;
}

FAKE_EXPORT void fake_cupti_unsafe_call(int mode, int *is_refused) {
  *is_refused = break_captures([mode](const Capturing &capture) {
    bool is_own = capture.thread == std::this_thread::get_id();
    return mode != 2 && capture.mode != 2 && (is_own || (mode == 0 && capture.mode == 0));
  });
}

FAKE_EXPORT uint64_t fake_cupti_broken_captures() {
  std::lock_guard lock(graphs().mutex);
  return graphs().broken;
}

FAKE_EXPORT void fake_cupti_capture_join(uint32_t captured, uint32_t joining) {
  std::lock_guard lock(graphs().mutex);
  graphs().captures[joining] = graphs().captures[captured];
  graphs().capturing = static_cast<uint32_t>(graphs().captures.size());
}

FAKE_EXPORT uint32_t fake_cupti_capture_end(uint32_t stream) {
  void *answer = nullptr;
  cuda::StreamEndCaptureParams parameters{handle(kStreamHandle, stream), &answer};
  DriverCall call(cupti::kCuStreamEndCapture, "cuStreamEndCapture", &parameters, 1);
  call.enter();
  std::lock_guard lock(graphs().mutex);
  const uint32_t graph = graphs().captures[stream].graph;
  // Captures that were broken have no graph in common, and end one by one.
  std::erase_if(graphs().captures, [graph, stream](const auto &capture) {
    return capture.first == stream || (graph != 0 && capture.second.graph == graph);
  });
  graphs().capturing = static_cast<uint32_t>(graphs().captures.size());
  answer = handle(kGraphHandle, graph);
  return graph;
}

FAKE_EXPORT uint64_t fake_cupti_graph_add_kernel(uint32_t graph, const char *name,
                                                 uint32_t stream) {
  Kernel kernel{intern(name), 1000, 0, 1, stream, {1, 1, 1}, {32, 1, 1}, 0, 16, 0};
  return add(graph, {0, 0, kernel});
}

FAKE_EXPORT void fake_cupti_graph_add_child(uint32_t graph, uint32_t child) {
  DriverCall call(cupti::kCuGraphAddChildGraphNode, "cuGraphAddChildGraphNode", nullptr, 1);
  call.enter();
  notify(cupti::kGraphNodeCreateStarting, about(graph));
  Node node;
  node.child = create(); // the node owns a clone
  clone_nodes(child, node.child);
  node.id = put(graph, node);
  notify(cupti::kGraphNodeCreated, about(graph, node));
}

FAKE_EXPORT uint32_t fake_cupti_graph_clone(uint32_t graph) {
  const uint32_t clone = create();
  clone_nodes(graph, clone);
  cupti::GraphData data = about(clone);
  data.original_graph = handle(kGraphHandle, graph);
  notify(cupti::kGraphCloned, data);
  return clone;
}

FAKE_EXPORT uint32_t fake_cupti_graph_instantiate(uint32_t graph) {
  void *answer = nullptr;
  cuda::GraphInstantiateParams parameters{&answer, handle(kGraphHandle, graph)};
  DriverCall call(cupti::kCuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", &parameters,
                  1);
  call.enter();
  const uint32_t executable = create(); // its id is that of the clone
  clone_nodes(graph, executable);
  const uint32_t inner = create();
  copy_inner(executable, inner);
  notify(cupti::kGraphExecCreateStarting, about(graph));
  inline_children(executable);
  cupti::GraphData data = about(graph);
  answer = data.graph_exec = handle(kExecHandle, executable);
  {
    std::lock_guard lock(graphs().mutex);
    graphs().inner[executable] = inner;
    if (library().kinds[cupti::kKindGraphTrace])
      graphs().traced.insert(executable);
  }
  notify(cupti::kGraphExecCreated, data);
  return executable;
}

FAKE_EXPORT void fake_cupti_graph_update(uint32_t executable, uint32_t graph) {
  cuda::GraphExecUpdateParams parameters{handle(kExecHandle, executable),
                                         handle(kGraphHandle, graph)};
  DriverCall call(cupti::kCuGraphExecUpdateV2, "cuGraphExecUpdate_v2", &parameters, 1);
  call.enter();
  Nodes kernels;
  append_kernels(graph, kernels);
  std::lock_guard lock(graphs().mutex);
  Nodes &present = graphs().graphs[executable].nodes;
  for (size_t i = 0; i < present.size() && i < kernels.size(); ++i)
    present[i].kernel = kernels[i].kernel; // the node keeps its id
}

FAKE_EXPORT uint32_t fake_cupti_graph_launch(uint32_t executable, uint32_t stream) {
  cuda::GraphLaunchParams parameters{handle(kExecHandle, executable),
                                     handle(kStreamHandle, stream)};
  DriverCall call(cupti::kCuGraphLaunch, "cuGraphLaunch", &parameters, 1);
  call.enter();
  if (library().kinds[cupti::kKindGraphTrace] && is_traced(executable)) {
    emit_trace(executable, stream, call.correlation());
    return call.correlation();
  }
  for (const Node &node : nodes_of(executable))
    emit_kernel(node.kernel, call.correlation(), executable, node.id);
  return call.correlation();
}

FAKE_EXPORT void fake_cupti_graph_destroy(uint32_t graph) {
  DriverCall call(cupti::kCuGraphDestroy, "cuGraphDestroy", nullptr, 1);
  call.enter();
  destroy(graph);
}

FAKE_EXPORT void fake_cupti_graph_exec_destroy(uint32_t executable) {
  DriverCall call(cupti::kCuGraphExecDestroy, "cuGraphExecDestroy", nullptr, 1);
  call.enter();
  cupti::GraphData data{};
  data.graph_exec = handle(kExecHandle, executable);
  notify(cupti::kGraphExecDestroyStarting, data);
  uint32_t inner = 0;
  {
    std::lock_guard lock(graphs().mutex);
    inner = graphs().inner[executable];
    graphs().inner.erase(executable);
    graphs().traced.erase(executable);
  }
  destroy(executable);
  destroy(inner);
}
