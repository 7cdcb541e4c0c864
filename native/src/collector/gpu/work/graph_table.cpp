#include "collector/gpu/work/graph_table.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace proton {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr size_t kMaxSteps = 1024;

} // namespace

void GraphTable::Making::add(Step step) {
  if (steps.size() == kMaxSteps)
    steps.erase(steps.begin(), steps.begin() + kMaxSteps / 2);
  steps.push_back(step);
}

uint32_t GraphTable::Making::end_node(uint32_t graph) {
  uint32_t child = 0;
  for (size_t i = steps.size(); i-- != 0;) {
    if (!steps[i].is_node)
      child = steps[i].graph;
    if (steps[i].is_node && steps[i].graph == graph) {
      steps.resize(i);
      return child;
    }
  }
  return 0; // begun before a session listened
}

void GraphTable::start(bool whole_graphs) {
  Lock lock(mutex_);
  whole_graphs_ = whole_graphs;
}

void GraphTable::suspend() noexcept {
  Lock lock(mutex_);
  for (auto [stream, stack] : captures_)
    stack->begun_.clear();
  left_open_.merge(captures_);
  captures_.clear();
  starting_ = 0;
  count_captures();
  making_.clear();
  generation_.fetch_add(1, std::memory_order_release);
}

void GraphTable::forget_all() noexcept {
  suspend();
  Lock lock(mutex_);
  for (auto [executable, layout] : executables_)
    sink_.retire(layout);
  for (auto &[id, graph] : graphs_)
    release(graph);
  executables_.clear();
  graphs_.clear();
  left_open_.clear();
  count_captures();
}

void GraphTable::count_captures() noexcept {
  size_t open = starting_ + captures_.size() + left_open_.size();
  if (open < counted_)
    captures_ended(counted_ - open);
  counted_ = open < counted_ ? open : counted_;
}

void GraphTable::release(const Graph &graph) {
  std::vector<CaptureId> held = graph.metrics;
  for (const Node &node : graph.nodes)
    if (node.at != 0)
      held.push_back(node.at);
  if (!held.empty())
    sink_.give_back(held);
}

void GraphTable::graph_created(uint32_t graph) {
  Lock lock(mutex_);
  graphs_.try_emplace(graph);
  making().is_executable = false; // the failure of one is not reported
  making().add({graph, false});
}

void GraphTable::node_starting(uint32_t graph) {
  Lock lock(mutex_);
  making().add({graph, true});
}

void GraphTable::graph_cloned(uint32_t graph, uint32_t original) {
  Lock lock(mutex_);
  take_metrics(graphs_[graph], original);
}

void GraphTable::graph_destroyed(uint32_t graph) {
  Lock lock(mutex_);
  auto found = graphs_.find(graph);
  if (found != graphs_.end()) {
    release(found->second);
    graphs_.erase(found);
  }
  auto mine = making_.find(std::this_thread::get_id());
  if (mine == making_.end())
    return;
  std::erase_if(mine->second.steps,
                [graph](const Making::Step &step) { return step.graph == graph; });
  if (mine->second.steps.empty() && !mine->second.is_executable)
    making_.erase(mine);
}

GraphTable::Node *GraphTable::find(Graph &graph, uint64_t node) {
  size_t likely = static_cast<uint32_t>(node);
  if (likely < graph.nodes.size() && graph.nodes[likely].id == node)
    return &graph.nodes[likely];
  for (auto each = graph.nodes.rbegin(); each != graph.nodes.rend(); ++each)
    if (each->id == node)
      return &*each;
  return nullptr;
}

void GraphTable::node_created(uint32_t graph, uint64_t node, bool is_kernel, CaptureId at) {
  Lock lock(mutex_);
  uint32_t child = making().end_node(graph);
  if (making().is_executable) { // in the place of another one, whose id it takes over
    if (at != 0)
      sink_.give_back({&at, 1});
    return;
  }
  Graph &in = graphs_[graph];
  in.next_node = std::max(in.next_node, static_cast<uint32_t>(node) + 1);
  in.nodes.push_back({node, is_kernel && child == 0, child, at});
}

void GraphTable::node_cloned(uint32_t graph, uint64_t node, uint32_t original,
                             uint64_t original_node) {
  Lock lock(mutex_);
  Graph &in = graphs_[graph];
  Node *clone = find(in, node);
  auto source = graphs_.find(original);
  Node *cloned = source == graphs_.end() ? nullptr : find(source->second, original_node);
  CaptureId at = cloned ? cloned->at : 0;
  if (clone) {
    if (clone->at != 0)
      sink_.give_back({&clone->at, 1});
    if (at != 0)
      sink_.keep({&at, 1});
    clone->at = at;
    clone->is_kernel = cloned && cloned->is_kernel;
  }
  take_metrics(in, original);
}

void GraphTable::take_metrics(Graph &to, uint32_t from) {
  auto source = graphs_.find(from);
  bool is_done = std::find(to.sources.begin(), to.sources.end(), from) != to.sources.end();
  if (source == graphs_.end() || is_done || &source->second == &to)
    return;
  to.sources.push_back(from);
  sink_.keep(source->second.metrics);
  to.metrics.insert(to.metrics.end(), source->second.metrics.begin(), source->second.metrics.end());
}

void GraphTable::node_destroyed(uint32_t graph, uint64_t node) {
  Lock lock(mutex_);
  auto in = graphs_.find(graph);
  Node *found = in == graphs_.end() ? nullptr : find(in->second, node);
  if (!found)
    return;
  if (making().is_executable && found->child == 0)
    return; // see node_created
  Node destroyed = *found;
  in->second.nodes.erase(in->second.nodes.begin() + (found - in->second.nodes.data()));
  if (destroyed.at != 0)
    sink_.give_back({&destroyed.at, 1});
  if (making().is_executable && destroyed.child != 0)
    inline_child(in->second, graph, destroyed.child);
}

void GraphTable::inline_child(Graph &graph, uint32_t id, uint32_t child) {
  auto found = graphs_.find(child);
  if (found == graphs_.end())
    return;
  copy_leaves(found->second, graph, id);
  take_metrics(graph, child);
}

void GraphTable::copy_leaves(const Graph &from, Graph &to, uint32_t to_id) {
  std::vector<Node> leaves;
  append_leaves(from, leaves);
  for (Node &leaf : leaves) {
    leaf.id = uint64_t{to_id} << 32 | to.next_node++;
    if (leaf.at != 0)
      sink_.keep({&leaf.at, 1});
    to.nodes.push_back(leaf);
  }
}

void GraphTable::append_leaves(const Graph &graph, std::vector<Node> &leaves) const {
  for (const Node &node : graph.nodes)
    if (node.child == 0)
      leaves.push_back(node);
  for (const Node &node : graph.nodes) {
    auto child = node.child == 0 ? graphs_.end() : graphs_.find(node.child);
    if (child != graphs_.end())
      append_leaves(child->second, leaves);
  }
}

void GraphTable::append_metrics(const Graph &graph, std::vector<CaptureId> &metrics) const {
  metrics.insert(metrics.end(), graph.metrics.begin(), graph.metrics.end());
  for (const Node &node : graph.nodes) {
    auto child = node.child == 0 ? graphs_.end() : graphs_.find(node.child);
    if (child != graphs_.end())
      append_metrics(child->second, metrics);
  }
}

void GraphTable::executable_starting() {
  Lock lock(mutex_);
  making().is_executable = true;
}

void GraphTable::executable_created(uint32_t original, uint32_t executable) {
  Lock lock(mutex_);
  making_.erase(std::this_thread::get_id());
  auto found = graphs_.find(executable);
  if (found != graphs_.end())
    take_metrics(found->second, original);
  define(executable);
}

void GraphTable::define(uint32_t executable) {
  GraphLayout layout;
  auto found = graphs_.find(executable);
  layout.is_known = found != graphs_.end();
  layout.is_whole = whole_graphs_;
  if (found != graphs_.end()) {
    std::vector<Node> leaves;
    append_leaves(found->second, leaves);
    for (const Node &leaf : leaves) {
      layout.nodes.push_back({leaf.id, leaf.at, leaf.is_kernel});
      layout.is_exact = layout.is_exact && leaf.is_kernel;
    }
    layout.is_exact = layout.is_exact && !found->second.has_others;
    append_metrics(found->second, layout.metrics);
  }
  if (layout.is_whole)
    layout.is_known = layout.is_exact = true;
  drop_layout(executable);
  executables_[executable] = sink_.add(std::move(layout));
}

void GraphTable::drop_layout(uint32_t executable) {
  auto found = executables_.find(executable);
  if (found == executables_.end())
    return;
  sink_.retire(found->second);
  executables_.erase(found);
  generation_.fetch_add(1, std::memory_order_release);
}

void GraphTable::executable_destroyed(uint32_t executable) {
  Lock lock(mutex_);
  drop_layout(executable);
}

void GraphTable::executable_updated(uint32_t executable, uint32_t graph) {
  Lock lock(mutex_);
  auto target = graphs_.find(executable);
  auto source = graphs_.find(graph);
  if (target == graphs_.end() || source == graphs_.end())
    return; // it keeps what is known of it
  std::vector<Node> leaves;
  append_leaves(source->second, leaves);
  std::vector<Node> &nodes = target->second.nodes;
  // Nodes are paired in the order of their making, as the driver does it.
  if (!std::equal(
          nodes.begin(), nodes.end(), leaves.begin(), leaves.end(),
          [](const Node &left, const Node &right) { return left.is_kernel == right.is_kernel; }))
    return;
  std::vector<CaptureId> metrics;
  append_metrics(source->second, metrics);
  sink_.keep(metrics);
  for (const Node &leaf : leaves)
    sink_.keep({&leaf.at, 1});
  release(target->second);
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].at = leaves[i].at;
    nodes[i].key = leaves[i].key;
  }
  target->second.metrics = std::move(metrics);
  define(executable);
}

LayoutId GraphTable::layout(uint32_t executable, bool &is_new_unknown) {
  Lock lock(mutex_);
  auto found = executables_.find(executable);
  is_new_unknown = found == executables_.end() && !whole_graphs_;
  if (found == executables_.end())
    define(executable);
  return executables_[executable];
}

void GraphTable::capture_starting() {
  capture_begins();
  Lock lock(mutex_);
  ++starting_;
  ++counted_;
}

void GraphTable::capture_refused() {
  Lock lock(mutex_);
  starting_ -= starting_ == 0 ? 0 : 1;
  count_captures();
}

void GraphTable::capture_begun(CaptureStack &stack, const void *stream, uint32_t graph) {
  Lock lock(mutex_);
  if (starting_ != 0) {
    --starting_;
  } else { // no session listened at the entry of the call
    proton::capture_found();
    ++counted_;
  }
  open_capture(stack, stream, graph);
}

void GraphTable::capture_found(CaptureStack &stack, const void *stream, uint32_t graph) {
  Lock lock(mutex_);
  if (captures_.contains(stream))
    return;
  proton::capture_found();
  ++counted_;
  if (graph != 0)
    graphs_[graph].has_others = true;
  open_capture(stack, stream, graph);
}

void GraphTable::open_capture(CaptureStack &stack, const void *stream, uint32_t graph) {
  stack.table_ = this;
  left_open_.erase(stream);
  stack.begun_.push_back({stream, graph});
  captures_[stream] = &stack;
  count_captures();
}

void GraphTable::capture_ended(const void *stream) {
  Lock lock(mutex_);
  left_open_.erase(stream);
  auto found = captures_.find(stream);
  if (found != captures_.end()) {
    std::erase_if(found->second->begun_,
                  [stream](const CaptureStack::Begun &begun) { return begun.stream == stream; });
    captures_.erase(found);
  }
  count_captures();
}

uint32_t GraphTable::newest_of_thread() {
  Lock lock(mutex_);
  auto mine = making_.find(std::this_thread::get_id());
  if (mine == making_.end())
    return 0;
  const std::vector<Making::Step> &steps = mine->second.steps;
  auto newest = std::find_if(steps.rbegin(), steps.rend(),
                             [](const Making::Step &step) { return !step.is_node; });
  return newest == steps.rend() ? 0 : newest->graph;
}

bool CaptureStack::is_open() noexcept {
  if (!table_)
    return false;
  Lock lock(table_->mutex_);
  return !begun_.empty();
}

void CaptureStack::add_metrics(uint32_t metrics) noexcept {
  Lock lock(table_->mutex_);
  if (metrics == 0)
    return;
  try {
    auto graph = begun_.empty() ? table_->graphs_.end() : table_->graphs_.find(begun_.back().graph);
    if (graph != table_->graphs_.end()) {
      graph->second.metrics.push_back(metrics);
      return;
    }
  } catch (...) { // no memory: the values are not added
  }
  table_->sink_.give_back({&metrics, 1});
}

// Graphs that the vendor's library copies in one step, without ids of their nodes.

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
      return; // made before a session listened: its first launch says so
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

LateGraph::LateGraph(const std::string &kind)
    : text_(
          "proton_bench: a " + kind +
          " graph was captured before profiling began or while it was paused, so its kernels are "
          "shown by name under <captured_at>; record while it is captured to see their scopes\n") {}

void LateGraph::warn() noexcept {
  if (has_warned_.exchange(true))
    return;
  // Not through a stream of the C library, whose lock the target may hold.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text_.data(), text_.size());
}

} // namespace proton
