// For graphs that a vendor copies in one step, without ids for their nodes.
#include "collector/gpu/work/graph_table.h"

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

} // namespace

void GraphTable::node_captured(uint32_t graph, bool is_kernel, uint64_t key, CaptureId at) {
  Lock lock(mutex_);
  Graph &in = graphs_[graph];
  Node node;
  node.id = uint64_t{graph} << 32 | in.next_node++;
  node.is_kernel = is_kernel;
  node.at = at;
  node.key = key;
  in.nodes.push_back(node);
}

void GraphTable::graph_copied(uint32_t graph, uint32_t from) {
  Lock lock(mutex_);
  Graph &to = graphs_[graph];
  auto source = graphs_.find(from);
  if (source == graphs_.end()) {
    to.has_others = true;
    return;
  }
  copy_leaves(source->second, to, graph);
  to.has_others |= source->second.has_others;
  take_metrics(to, from);
}

void GraphTable::executable_made(uint32_t original, uint32_t executable, bool knows_all) {
  {
    Lock lock(mutex_);
    if (!graphs_.contains(original))
      return; // made before the collector started: its first launch says so
  }
  graph_copied(executable, original);
  Lock lock(mutex_);
  graphs_[executable].has_others |= !knows_all;
  define(executable);
}

std::vector<NodeKey> GraphTable::kernel_keys(uint32_t executable) {
  Lock lock(mutex_);
  std::vector<NodeKey> keys;
  auto found = graphs_.find(executable);
  if (found == graphs_.end())
    return keys;
  for (const Node &node : found->second.nodes)
    if (node.is_kernel)
      keys.push_back({node.id, node.key});
  return keys;
}

size_t GraphTable::node_count(uint32_t graph) {
  Lock lock(mutex_);
  auto found = graphs_.find(graph);
  return found == graphs_.end() ? 0 : found->second.nodes.size();
}

} // namespace proton
