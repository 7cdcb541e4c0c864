#include "aggregate/session_tree.h"

#include <vector>

#include "calltree/context_tree.h"
#include "record/code_table.h"
#include "record/device.h"
#include "record/variant_table.h"

namespace proton {
namespace {

constexpr const char *kTime = "time (ns)";
constexpr const char *kCount = "count";
constexpr const char *kBytes = "bytes";
constexpr const char *kWall = "wall (ns)";

} // namespace

SessionTree::Phase &SessionTree::phase(uint32_t number) {
  if (newest_ && newest_number_ == number)
    return *newest_;
  std::unique_ptr<Phase> &found = phases_[number];
  if (!found)
    found = std::make_unique<Phase>();
  newest_ = found.get();
  newest_number_ = number;
  return *found;
}

Distribution &SessionTree::Phase::times(NodeIndex node) {
  MetricColumns &metrics = tree.metrics();
  if (time_column == kUnknownColumn) {
    time_column = metrics.builtin(kTime, Aggregation::kInclusive);
    count_column = metrics.builtin(kCount, Aggregation::kInclusive);
  }
  return metrics.distribution(time_column, node);
}

void SessionTree::Phase::add_time(NodeIndex node, Distribution &times, int64_t duration_ns) {
  MetricColumns &metrics = tree.metrics();
  metrics.add_int(time_column, node, duration_ns);
  metrics.add_int(count_column, node, 1);
  metrics.add_sample(times, static_cast<double>(duration_ns));
}

void SessionTree::Phase::add_time(NodeIndex node, int64_t duration_ns) {
  add_time(node, times(node), duration_ns);
}

CallPathTree &SessionTree::tree(uint32_t number) { return phase(number).tree; }

const CallPathTree *SessionTree::find(uint32_t number) const {
  auto found = phases_.find(number);
  return found == phases_.end() ? nullptr : &found->second->tree;
}

NodeIndex SessionTree::node_for(Phase &phase, ContextId shadow, ContextId python) const {
  if (source_ == ContextSource::kShadow)
    return shadow_node(phase, shadow);
  uint64_t key = (uint64_t{shadow} << 32) | python;
  auto cached = phase.paths.find(key);
  if (cached != phase.paths.end())
    return cached->second;
  const ContextTree &contexts = ContextTree::instance();
  std::vector<ContextId> frames; // innermost first
  std::vector<ContextId> tests;
  for (ContextId id = shadow; id != 0 && contexts.node(id).birth >= birth_;
       id = contexts.node(id).parent) {
    const ContextNode &frame = contexts.node(id);
    if (frame.kind == FrameKind::kTest)
      tests.push_back(id);
    else if (shows(frame))
      frames.push_back(id);
  }
  for (ContextId id = python; id != 0; id = contexts.node(id).parent)
    frames.push_back(id);
  frames.insert(frames.end(), tests.begin(), tests.end());
  NodeIndex node = kRootNode;
  for (auto id = frames.rbegin(); id != frames.rend(); ++id)
    node = phase.tree.child(node, contexts.node(*id).name, contexts.node(*id).kind);
  phase.paths.emplace(key, node);
  return node;
}

NodeIndex SessionTree::shadow_node(Phase &phase, ContextId shadow) const {
  // Each frame's own node is kept, so that a path costs no more than its new frames, however deep.
  const ContextTree &contexts = ContextTree::instance();
  std::vector<ContextId> fresh; // innermost first
  NodeIndex node = kRootNode;
  for (ContextId id = shadow; id != 0 && contexts.node(id).birth >= birth_;
       id = contexts.node(id).parent) {
    auto cached = phase.paths.find(uint64_t{id} << 32);
    if (cached != phase.paths.end()) {
      node = cached->second;
      break;
    }
    fresh.push_back(id);
  }
  for (auto id = fresh.rbegin(); id != fresh.rend(); ++id) {
    const ContextNode &frame = contexts.node(*id);
    if (shows(frame))
      node = phase.tree.child(node, frame.name, frame.kind);
    phase.paths.emplace(uint64_t{*id} << 32, node);
  }
  return node;
}

bool SessionTree::shows(FrameKind kind) const {
  return source_ == ContextSource::kShadow || kind != FrameKind::kScope;
}

bool SessionTree::shows(const ContextNode &frame) const {
  // A kernel inside the frame that a launch hook named for it is the same kernel.
  bool is_named = frame.kind == FrameKind::kKernel && naming_frame(frame.parent) != nullptr;
  return shows(frame.kind) && !is_named;
}

uint64_t SessionTree::revision(uint32_t number) const {
  auto found = phases_.find(number);
  return found == phases_.end() ? 0 : found->second->revision;
}

void SessionTree::add_range(uint32_t number, const RangeRecord &record) {
  const ContextNode &own = ContextTree::instance().node(record.at.shadow);
  if (own.birth < birth_)
    return; // opened before this session started
  bool is_scope = record.kind == RangeKind::kScope || record.kind == RangeKind::kSeen;
  if (is_scope && !shows(own.kind))
    return;
  Phase &target = phase(number);
  ++target.revision;
  if (record.kind == RangeKind::kSeen) {
    node_for(target, record.at.shadow, 0);
    return;
  }
  if (record.kind == RangeKind::kScope) {
    if (!records_wall_)
      return;
    NodeIndex node = node_for(target, record.at.shadow, 0);
    MetricColumns &metrics = target.tree.metrics();
    size_t wall = metrics.builtin(kWall, Aggregation::kExclusive);
    metrics.add_int(wall, node, record.duration_ns);
    metrics.add_sample(wall, node, static_cast<double>(record.duration_ns));
    return;
  }
  static const int32_t device = DeviceTable::instance().find_or_add("CPU", 0);
  if (record.kind == RangeKind::kOp) {
    NodeIndex node = node_for(target, record.at.shadow, record.at.python);
    target.tree.set_device(node, device);
    target.add_time(node, record.self_ns);
    return;
  }
  const ContextNode *named = naming_frame(own.parent);
  const ContextNode &kernel = named ? *named : own;
  Leaf leaf{kernel.name, device, find_variant(record.variant)};
  NodeIndex node = leaf_node(target, {kernel.parent, record.at.python, 0}, leaf);
  target.add_time(node, record.self_ns);
}

const ContextNode *SessionTree::naming_frame(ContextId at) const {
  const ContextNode &frame = ContextTree::instance().node(at);
  bool is_named = at != 0 && frame.kind == FrameKind::kKernel && frame.birth >= birth_;
  return is_named ? &frame : nullptr;
}

NodeIndex SessionTree::leaf_node(Phase &target, const Capture &above, const Leaf &leaf) const {
  NodeIndex parent = node_for(target, above.shadow, above.python);
  CallPathTree &tree = target.tree;
  int32_t variant = leaf.variant ? tree.variant(parent, leaf.name, *leaf.variant) : kNone;
  return tree.child(parent, leaf.name, FrameKind::kKernel, leaf.device, variant);
}

NodeIndex SessionTree::kernel_node(Phase &target, const LaunchRecord &launch,
                                   const KernelRecord &record) const {
  const Capture &at = launch.at;
  const ContextNode *named = naming_frame(at.shadow);
  Leaf leaf;
  leaf.name = named ? named->name : Name(record.name ? record.name : "<unknown kernel>");
  leaf.device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
  leaf.variant = record.variant;
  bool is_renamed = named && record.name && leaf.name.text() != record.name;
  VariantRecord known; // what the launch knew goes first
  if (record.variant && (launch.code != 0 || is_renamed)) {
    known = *record.variant;
    leaf.variant = &known;
    if (launch.code != 0) {
      known.code_hash = code_hash(launch.code);
      known.config = code_config(launch.code);
    }
    if (is_renamed && !known.raw_name)
      known.raw_name = record.name;
  }
  return leaf_node(target, {named ? named->parent : at.shadow, at.python, at.epoch}, leaf);
}

SessionTree::FoundLeaf &SessionTree::slot_for(Phase &target, const LaunchRecord &launch,
                                              uint64_t identity) {
  if (target.found.empty())
    target.found.resize(kFoundLeaves);
  uint64_t hash = identity * 0x9E3779B97F4A7C15ull;
  hash ^= (uint64_t{launch.at.shadow} << 32 | launch.at.python) * 0xC2B2AE3D27D4EB4Full;
  hash ^= launch.code;
  return target.found[(hash >> 32) & (kFoundLeaves - 1)];
}

void SessionTree::add_kernel(uint32_t number, const LaunchRecord &launch,
                             const KernelRecord &record) {
  Phase &target = phase(number);
  ++target.revision;
  int64_t duration_ns = record.end_ns - record.start_ns;
  if (record.identity == 0) {
    target.add_time(kernel_node(target, launch, record), duration_ns);
    return;
  }
  FoundLeaf &leaf = slot_for(target, launch, record.identity);
  bool is_same = leaf.identity == record.identity && leaf.shadow == launch.at.shadow &&
                 leaf.python == launch.at.python && leaf.code == launch.code;
  if (!is_same) {
    NodeIndex node = kernel_node(target, launch, record);
    leaf = {record.identity,    launch.at.shadow, launch.at.python, launch.code, node,
            &target.times(node)};
  }
  target.add_time(leaf.node, *leaf.times, duration_ns);
}

void SessionTree::add_copy(uint32_t number, const LaunchRecord &launch, const CopyRecord &record) {
  Phase &target = phase(number);
  ++target.revision;
  NodeIndex parent = node_for(target, launch.at.shadow, launch.at.python);
  int32_t device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
  NodeIndex node = target.tree.child(parent, Name(record.name), FrameKind::kCopy, device);
  target.tree.set_device(node, device);
  target.add_time(node, record.end_ns - record.start_ns);
  target.tree.metrics().add(node, kBytes, Aggregation::kInclusive,
                            static_cast<int64_t>(record.bytes));
}

void SessionTree::add_metric(uint32_t number, const Capture &at, const std::string &name,
                             Aggregation aggregation, const MetricValue &value) {
  Phase &target = phase(number);
  ++target.revision;
  NodeIndex node = node_for(target, at.shadow, at.python);
  target.tree.metrics().add(node, name, aggregation, value);
}

} // namespace proton
