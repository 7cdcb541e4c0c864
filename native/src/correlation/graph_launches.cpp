#include "correlation/graph_launches.h"

#include <algorithm>
#include <utility>

namespace proton {

const GraphNode *LayoutEntry::find(uint64_t node) {
  std::vector<GraphNode> &nodes = layout.nodes;
  size_t next = newest + 1 < nodes.size() ? newest + 1 : 0;
  if (next < nodes.size() && nodes[next].id == node) {
    newest = next;
    return &nodes[next];
  }
  auto found = std::lower_bound(nodes.begin(), nodes.end(), node,
                                [](const GraphNode &each, uint64_t id) { return each.id < id; });
  if (found == nodes.end() || found->id != node)
    return nullptr;
  newest = static_cast<size_t>(found - nodes.begin());
  return &*found;
}

LayoutId GraphLaunches::add(GraphLayout layout) {
  if (layouts_.size() >= kMaxLayouts / 2)
    return 0;
  while (next_ == 0 || layouts_.contains(next_))
    next_ = (next_ + 1) % kMaxLayouts;
  auto fresh = std::make_unique<LayoutEntry>();
  std::sort(layout.nodes.begin(), layout.nodes.end(),
            [](const GraphNode &left, const GraphNode &right) { return left.id < right.id; });
  for (const GraphNode &node : layout.nodes)
    fresh->kernels += node.is_kernel ? 1 : 0;
  if (layout.is_whole)
    fresh->kernels = 1;
  fresh->layout = std::move(layout);
  const GraphLayout &kept = fresh->layout;
  auto placed = layouts_.emplace(next_, std::move(fresh)).first;
  for (const GraphNode &node : kept.nodes)
    captures_.keep(node.at);
  for (CaptureId metrics : kept.metrics)
    captures_.keep(metrics);
  next_ = (next_ + 1) % kMaxLayouts;
  return placed->first;
}

void GraphLaunches::retire(LayoutId id) {
  auto found = layouts_.find(id);
  if (found == layouts_.end())
    return;
  found->second->is_retired = true;
  std::deque<uint64_t> &waiting = found->second->waiting;
  retired_.insert(retired_.end(), waiting.begin(), waiting.end());
  waiting.clear();
  erase_if_unused(id, *found->second);
}

void GraphLaunches::erase_if_unused(LayoutId id, LayoutEntry &entry) {
  if (!entry.is_retired || entry.launches != 0)
    return;
  for (const GraphNode &node : entry.layout.nodes)
    captures_.give_back(node.at);
  for (CaptureId metrics : entry.layout.metrics)
    captures_.give_back(metrics);
  layouts_.erase(id);
}

LayoutEntry &GraphLaunches::entry(LayoutId id) {
  auto found = layouts_.find(id);
  if (found != layouts_.end())
    return *found->second;
  unknown_.layout.is_known = unknown_.layout.is_exact = false;
  return unknown_;
}

OpenGraph &GraphLaunches::open(const LaunchRecord &launch) {
  LayoutEntry &layout = entry(launch.code);
  OpenGraph &open = open_[launch.correlation_id];
  open.launch = launch;
  open.layout = &layout;
  open.missing = layout.kernels;
  ++layout.launches;
  if (layout.layout.is_known && layout.kernels == 0) // no record says that it is over
    layout.waiting.push_back(launch.correlation_id);
  return open;
}

OpenGraph *GraphLaunches::find(uint64_t correlation_id) {
  auto found = open_.find(correlation_id);
  return found == open_.end() ? nullptr : &found->second;
}

CaptureId GraphLaunches::note(OpenGraph &open, uint64_t node, bool is_kernel) {
  LayoutEntry &entry = *open.layout;
  const GraphNode *found = entry.find(node);
  if (entry.layout.is_whole && node != kWholeGraph) // made before launches were recorded whole
    entry.layout.is_whole = entry.layout.is_known = entry.layout.is_exact = false;
  bool is_expected = entry.layout.is_whole ? node == kWholeGraph
                                           : is_kernel && found != nullptr && found->is_kernel;
  bool is_first = !std::exchange(open.has_records, true);
  bool is_over_with_last = entry.layout.is_known && entry.layout.is_exact;
  bool waits_already = entry.layout.is_known && entry.kernels == 0;
  if (is_first && !is_over_with_last && !waits_already)
    (entry.is_retired ? retired_ : entry.waiting).push_back(open.launch.correlation_id);
  if (is_expected && open.missing != 0)
    open.is_complete = --open.missing == 0 && entry.layout.is_known;
  return found ? found->at : 0;
}

uint64_t GraphLaunches::take_settled(OpenGraph &open) {
  std::deque<uint64_t> &waiting = open.layout->waiting;
  bool has_kernels = !open.layout->layout.is_known || open.layout->kernels != 0;
  if (waiting.size() <= (has_kernels ? kWaiting : kMaxQueued))
    return 0;
  return pop(waiting);
}

uint64_t GraphLaunches::take_settled_retired() {
  return retired_.size() <= kMaxQueued ? 0 : pop(retired_);
}

uint64_t GraphLaunches::pop(std::deque<uint64_t> &ids) {
  uint64_t oldest = ids.front();
  ids.pop_front();
  return oldest;
}

void GraphLaunches::close(uint64_t correlation_id) {
  auto found = open_.find(correlation_id);
  if (found == open_.end())
    return;
  LayoutEntry &entry = *found->second.layout;
  LayoutId id = found->second.launch.code;
  open_.erase(found);
  --entry.launches;
  if (&entry != &unknown_)
    erase_if_unused(id, entry);
}

} // namespace proton
