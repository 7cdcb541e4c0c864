// Where work of graphs stands in a session's tree: below the launch, on the path of its capture.
#include <vector>

#include "aggregate/tree/session_tree.h"
#include "calltree/context_tree.h"
#include "record/device.h"

namespace proton {

NodeIndex SessionTree::captured_node(Phase &target, const LaunchRecord &launch,
                                     const GraphPlace &place) const {
  static const Name captured_at("<captured_at>");
  NodeIndex above = node_for(target, launch.at.shadow, launch.at.python);
  uint64_t key = (uint64_t{above} << 32) | place.id;
  auto cached = target.captured.find(key);
  if (cached != target.captured.end())
    return cached->second;
  NodeIndex node = target.tree.child(above, captured_at, FrameKind::kGraph);
  if (place.id != 0) {
    // Not through `paths`: contexts of a capture may be freed while the phase goes on.
    const ContextTree &contexts = ContextTree::instance();
    const ContextNode *named = naming_frame(place.at->shadow);
    ContextId shadow = named ? named->parent : place.at->shadow;
    std::vector<ContextId> frames = frames_of(shadow, place.at->python);
    for (auto id = frames.rbegin(); id != frames.rend(); ++id)
      node = target.tree.child(node, contexts.node(*id).name, contexts.node(*id).kind);
  }
  if (target.captured.size() >= kMaxCaptured) // of a program that captures anew at every step
    target.captured.clear();
  target.captured.emplace(key, node);
  return node;
}

// Upstream has no frame for what it did not see captured.
NodeIndex SessionTree::graph_parent(Phase &target, const LaunchRecord &launch,
                                    const GraphPlace &place) const {
  return upstream_shape_ && place.id == 0 ? node_for(target, launch.at.shadow, launch.at.python)
                                          : captured_node(target, launch, place);
}

NodeIndex SessionTree::graph_leaf(Phase &target, const LaunchRecord &launch,
                                  const GraphPlace &place, const KernelRecord &record) const {
  int32_t device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
  if (record.graph_node == kWholeGraph) {
    NodeIndex above = node_for(target, launch.at.shadow, launch.at.python);
    NodeIndex node = target.tree.child(above, Name(record.name), FrameKind::kGraph, device);
    target.tree.set_device(node, device);
    return node;
  }
  NodeIndex parent = graph_parent(target, launch, place);
  const ContextNode *named = place.id != 0 ? naming_frame(place.at->shadow) : nullptr;
  Name name = named ? named->name : name_of(record);
  int32_t variant = kNone;
  if (record.variant)
    variant = target.tree.variant(parent, name, renamed(*record.variant, record, name));
  return target.tree.child(parent, name, FrameKind::kKernel, device, variant);
}

NodeIndex SessionTree::graph_node(uint32_t number, const LaunchRecord &launch) {
  return captured_node(phase(number), launch, {});
}

NodeIndex SessionTree::add_node(uint32_t number, const LaunchRecord &launch,
                                const GraphPlace &place, const KernelRecord &record) {
  return add_found(number, launch, record, &place);
}

NodeIndex SessionTree::add_node(uint32_t number, const LaunchRecord &launch,
                                const GraphPlace &place, const CopyRecord &record) {
  Phase &target = phase(number);
  return target.add_copy(graph_parent(target, launch, place), record, launch.called_ns);
}

void SessionTree::add_metric(uint32_t number, const LaunchRecord &launch, const GraphPlace &place,
                             const UserMetric &metric) {
  Phase &target = phase(number);
  ++target.revision;
  NodeIndex node = captured_node(target, launch, place);
  if (const ContextNode *named = naming_frame(place.at->shadow)) // they are that kernel's
    node = target.tree.child(node, named->name, FrameKind::kKernel);
  target.tree.metrics().add(node, *metric.metric, metric.value);
}

} // namespace proton
