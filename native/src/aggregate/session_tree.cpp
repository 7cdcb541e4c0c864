#include "aggregate/session_tree.h"

#include <vector>

#include "calltree/context_tree.h"
#include "record/device.h"
#include "record/variant_table.h"

namespace proton {
namespace {

constexpr const char *kTime = "time (ns)";
constexpr const char *kCount = "count";
constexpr const char *kWall = "wall (ns)";

void add_time(CallPathTree &tree, NodeIndex node, int64_t duration_ns) {
  MetricColumns &metrics = tree.metrics();
  size_t time = metrics.builtin(kTime, Aggregation::kInclusive);
  metrics.add_int(time, node, duration_ns);
  metrics.add_sample(time, node, static_cast<double>(duration_ns));
  metrics.add_int(metrics.builtin(kCount, Aggregation::kInclusive), node, 1);
}

bool is_scope(FrameKind kind) { return kind == FrameKind::kScope || kind == FrameKind::kTest; }

} // namespace

SessionTree::Phase &SessionTree::phase(uint32_t number) {
  std::unique_ptr<Phase> &found = phases_[number];
  if (!found)
    found = std::make_unique<Phase>();
  return *found;
}

CallPathTree &SessionTree::tree(uint32_t number) { return phase(number).tree; }

const CallPathTree *SessionTree::find(uint32_t number) const {
  auto found = phases_.find(number);
  return found == phases_.end() ? nullptr : &found->second->tree;
}

NodeIndex SessionTree::node_for(Phase &phase, ContextId shadow, ContextId python) const {
  if (source_ == ContextSource::kShadow)
    python = 0;
  uint64_t key = (uint64_t{shadow} << 32) | python;
  auto cached = phase.paths.find(key);
  if (cached != phase.paths.end())
    return cached->second;
  const ContextTree &contexts = ContextTree::instance();
  std::vector<ContextId> frames;
  for (ContextId id = shadow; id != 0 && contexts.node(id).birth >= birth_;
       id = contexts.node(id).parent) {
    if (source_ == ContextSource::kShadow || !is_scope(contexts.node(id).kind))
      frames.push_back(id);
  }
  for (ContextId id = python; id != 0; id = contexts.node(id).parent)
    frames.push_back(id);
  NodeIndex node = kRootNode;
  for (auto id = frames.rbegin(); id != frames.rend(); ++id)
    node = phase.tree.child(node, contexts.node(*id).name, contexts.node(*id).kind);
  phase.paths.emplace(key, node);
  return node;
}

void SessionTree::add_range(uint32_t number, const RangeRecord &record) {
  const ContextNode &own = ContextTree::instance().node(record.at.shadow);
  if (own.birth < birth_)
    return; // opened before this session started
  bool is_wall = record.kind == RangeKind::kScope;
  if (is_wall && (!records_wall_ || source_ == ContextSource::kPython))
    return; // scopes are not on the paths of a Python session
  Phase &target = phase(number);
  if (is_wall) {
    NodeIndex node = node_for(target, record.at.shadow, record.at.python);
    MetricColumns &metrics = target.tree.metrics();
    size_t wall = metrics.builtin(kWall, Aggregation::kExclusive);
    metrics.add_int(wall, node, record.duration_ns);
    metrics.add_sample(wall, node, static_cast<double>(record.duration_ns));
    return;
  }
  int32_t device = DeviceTable::instance().find_or_add("CPU", 0);
  if (record.kind == RangeKind::kOp) {
    NodeIndex node = node_for(target, record.at.shadow, record.at.python);
    target.tree.set_device(node, device);
    add_time(target.tree, node, record.self_ns);
    return;
  }
  NodeIndex parent = node_for(target, own.parent, record.at.python);
  const VariantRecord *facts = find_variant(record.variant);
  int32_t variant = facts ? target.tree.variant(parent, own.name, *facts) : kNone;
  NodeIndex leaf = target.tree.child(parent, own.name, FrameKind::kKernel, device, variant);
  add_time(target.tree, leaf, record.self_ns);
}

void SessionTree::add_kernel(uint32_t number, const Capture &at, const KernelRecord &record) {
  Phase &target = phase(number);
  const ContextNode &innermost = ContextTree::instance().node(at.shadow);
  // A launch hook that named the launch put the kernel's own frame on the stack.
  bool is_named = at.shadow != 0 && innermost.kind == FrameKind::kKernel &&
                  innermost.birth >= birth_;
  NodeIndex parent = node_for(target, is_named ? innermost.parent : at.shadow, at.python);
  Name name = is_named ? innermost.name : Name(record.name ? record.name : "<unknown kernel>");
  int32_t device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
  int32_t variant = record.variant ? target.tree.variant(parent, name, *record.variant) : kNone;
  NodeIndex leaf = target.tree.child(parent, name, FrameKind::kKernel, device, variant);
  add_time(target.tree, leaf, record.end_ns - record.start_ns);
}

void SessionTree::add_metric(uint32_t number, const Capture &at, const std::string &name,
                             Aggregation aggregation, const MetricValue &value) {
  Phase &target = phase(number);
  NodeIndex node = node_for(target, at.shadow, at.python);
  target.tree.metrics().add(node, name, aggregation, value);
}

} // namespace proton
