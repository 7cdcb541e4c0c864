#include "aggregate/tree/session_tree.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "aggregate/kernels/kernel_parts.h"
#include "calltree/call_path_tree.h"
#include "calltree/context_tree.h"
#include "record/code_table.h"
#include "record/device.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

constexpr const char *kTime = "time (ns)";
constexpr const char *kCount = "count";
constexpr const char *kBytes = "bytes";
constexpr const char *kWall = "wall (ns)";

struct TimedLeaf {
  CallPathTree *tree;
  NodeIndex node;
  int64_t window_ns;
  int64_t ever_ns;
};
using LeavesByKernel = std::multimap<std::string_view, TimedLeaf>;

/// The name of a leaf's kernel to the device's tools; as it is shown where only that is known.
std::string_view raw_name(const CallPathTree &tree, const TreeNode &node) {
  if (node.variant != kNone) {
    const Variant &variant = tree.variants()[static_cast<size_t>(node.variant)];
    if (!variant.raw_name.empty())
      return variant.raw_name;
  }
  return node.name.text();
}

void collect_leaves(CallPathTree &tree, const std::vector<int64_t> &before, size_t column,
                    LeavesByKernel &leaves) {
  static const int32_t cpu = DeviceTable::instance().find_or_add("CPU", 0);
  const MetricColumn &times = tree.metrics().columns()[column];
  for (NodeIndex index = 0; index < times.ints.size(); ++index) {
    const TreeNode &node = tree.nodes()[index];
    bool is_kernel = node.kind == FrameKind::kKernel && node.device != kNone && node.device != cpu;
    if (!is_kernel || !times.has(index))
      continue;
    int64_t ever_ns = times.ints[index];
    int64_t before_ns = index < before.size() ? before[index] : 0;
    leaves.emplace(raw_name(tree, node), TimedLeaf{&tree, index, ever_ns - before_ns, ever_ns});
  }
}

/// The leaves of a kernel with the time that counts, and a place for time outside of this session.
std::vector<SampledLeaf> shares_of(const PcSampleRecord &record, const LeavesByKernel &leaves,
                                   const KernelTimes &all) {
  std::vector<TimedLeaf> found;
  auto take = [&](std::string_view name) {
    auto [first, last] = leaves.equal_range(name);
    for (auto each = first; each != last; ++each)
      found.push_back(each->second);
  };
  take(record.raw_name);
  // Of a leaf with too many variants only the shown name is known.
  if (std::string_view(record.raw_name) != record.kernel)
    take(record.kernel);
  KernelTimes::Time whole = all.find(record.raw_name);
  // Samples may come after the work of their window was counted; then all that ran counts.
  bool is_late = whole.window_ns == 0;
  int64_t outside_ns = is_late ? whole.ever_ns : whole.window_ns;
  std::vector<SampledLeaf> shares;
  for (const TimedLeaf &leaf : found) {
    int64_t time_ns = is_late ? leaf.ever_ns : leaf.window_ns;
    if (time_ns > 0)
      shares.push_back({leaf.tree, leaf.node, time_ns});
    outside_ns -= std::max<int64_t>(time_ns, 0);
  }
  if (outside_ns > 0)
    shares.push_back({nullptr, 0, outside_ns});
  return shares;
}

bool is_of_library(std::string_view frame) {
  for (std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen "})
    if (frame.find(part) != std::string_view::npos)
      return true;
  return false;
}

} // namespace

SessionTree::SessionTree(ContextSource source, uint32_t generation, bool records_wall,
                         bool keeps_timeline, bool upstream_shape)
    : source_(source), generation_(generation), records_wall_(records_wall),
      keeps_timeline_(keeps_timeline), upstream_shape_(upstream_shape) {
  if (records_wall)
    TickClock::calibrate(); // before a scope is timed
}

void SessionTree::set_event_sink(std::shared_ptr<EventSink> sink) {
  TickClock::calibrate();
  events_ = sink ? std::make_unique<SessionEvents>(std::move(sink)) : nullptr;
}

SessionTree::Phase &SessionTree::phase(uint32_t number) {
  if (newest_ && newest_number_ == number)
    return *newest_;
  std::unique_ptr<Phase> &found = phases_[number];
  if (!found)
    found = std::make_unique<Phase>(pauses_, samples_host_);
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

int64_t SessionTree::time_of(uint32_t number, NodeIndex node) {
  Phase &target = phase(number);
  if (target.time_column == kUnknownColumn)
    return 0;
  const MetricColumn &times = target.tree.metrics().columns()[target.time_column];
  return times.holds(node) == MetricColumn::Held::kInt ? times.ints[node] : 0;
}

CallPathTree &SessionTree::tree(uint32_t number) {
  Phase &found = phase(number);
  found.devices.publish(found.tree);
  found.host_idle.publish(found.tree);
  found.work.publish(found.tree);
  if (found.memory)
    found.memory->publish(found.tree);
  return found.tree;
}

const CallPathTree *SessionTree::find(uint32_t number) const {
  auto found = phases_.find(number);
  return found == phases_.end() ? nullptr : &found->second->tree;
}

NodeIndex SessionTree::child_of(CallPathTree &tree, NodeIndex above,
                                const ContextNode &frame) const {
  FrameKind kind = frame.kind == FrameKind::kContextOp ? FrameKind::kOp : frame.kind;
  const VariantRecord *record = has(ContextSource::kShapes) ? find_variant(frame.variant) : nullptr;
  if (record && kind == FrameKind::kKernel)
    return tree.kernel(above, frame.name, record->signature);
  int32_t variant = record ? tree.variant(above, frame.name, *record) : kNone;
  return tree.child(above, frame.name, kind, kNone, variant);
}

NodeIndex SessionTree::node_for(Phase &phase, ContextId shadow, ContextId python) const {
  if (!has(ContextSource::kPython))
    return shadow_node(phase, shadow);
  uint64_t key = (uint64_t{shadow} << 32) | python;
  auto cached = phase.paths.find(key);
  if (cached != phase.paths.end())
    return cached->second;
  const ContextTree &contexts = ContextTree::instance();
  std::vector<ContextId> frames = frames_of(shadow, python);
  NodeIndex node = kRootNode;
  for (auto id = frames.rbegin(); id != frames.rend(); ++id)
    node = child_of(phase.tree, node, contexts.node(*id));
  phase.paths.emplace(key, node);
  return node;
}

std::vector<ContextId> SessionTree::frames_of(ContextId shadow, ContextId python) const {
  const ContextTree &contexts = ContextTree::instance();
  std::vector<ContextId> frames;
  std::vector<ContextId> tests;
  for (ContextId id = shadow; id != 0 && contexts.node(id).generation >= generation_;
       id = contexts.node(id).parent) {
    const ContextNode &frame = contexts.node(id);
    if (frame.kind == FrameKind::kTest && has(ContextSource::kPython))
      tests.push_back(id);
    else if (shows(frame))
      frames.push_back(id);
  }
  if (has(ContextSource::kPython))
    for (ContextId id = python; id != 0; id = contexts.node(id).parent)
      frames.push_back(id);
  frames.insert(frames.end(), tests.begin(), tests.end());
  return frames;
}

NodeIndex SessionTree::shadow_node(Phase &phase, ContextId shadow) const {
  // Each frame's own node is kept, so that a path costs no more than its new frames, however deep.
  const ContextTree &contexts = ContextTree::instance();
  std::vector<ContextId> fresh; // innermost first
  NodeIndex node = kRootNode;
  for (ContextId id = shadow; id != 0 && contexts.node(id).generation >= generation_;
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
      node = child_of(phase.tree, node, frame);
    phase.paths.emplace(uint64_t{*id} << 32, node);
  }
  return node;
}

bool SessionTree::shows(FrameKind kind) const {
  switch (kind) {
  case FrameKind::kScope:
    return !has(ContextSource::kPython);
  case FrameKind::kLayer:
    return has(ContextSource::kLayers);
  case FrameKind::kContextOp:
    return has(ContextSource::kOps);
  default:
    return true;
  }
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

NodeIndex SessionTree::scope_node(uint32_t number, ContextId scope) {
  const ContextNode &own = ContextTree::instance().node(scope);
  // A scope that was opened before this session started is not part of it.
  return own.generation < generation_ || !shows(own.kind) ? kNoNode
                                                          : node_for(phase(number), scope, 0);
}

NodeIndex SessionTree::add_range(uint32_t number, const RangeRecord &record) {
  const ContextNode &own = ContextTree::instance().node(record.at.shadow);
  if (own.generation < generation_)
    return kNoNode;
  bool is_scope = record.kind == RangeKind::kScope || record.kind == RangeKind::kSeen;
  if (is_scope && !shows(own.kind))
    return kNoNode;
  Phase &target = phase(number);
  ++target.revision;
  if (is_scope) {
    bool wants_end = record.kind == RangeKind::kSeen || wants_times();
    NodeIndex node = wants_end ? range_node(target, record.kind, record.at, -1) : kNoNode;
    if (record.kind == RangeKind::kSeen || !records_wall_)
      return node;
    MetricColumns &metrics = target.tree.metrics();
    size_t wall = metrics.builtin(kWall, Aggregation::kExclusive);
    metrics.add_int(wall, node, record.duration_ns);
    metrics.add_sample(wall, node, static_cast<double>(record.duration_ns));
    return node;
  }
  NodeIndex node = range_node(target, record.kind, record.at, record.variant);
  target.add_time(node, record.self_ns);
  return node;
}

NodeIndex SessionTree::range_node(Phase &target, RangeKind kind, const Capture &at,
                                  int32_t variant) {
  if (kind == RangeKind::kScope || kind == RangeKind::kSeen)
    return node_for(target, at.shadow, 0);
  static const int32_t device = DeviceTable::instance().find_or_add("CPU", 0);
  if (kind == RangeKind::kOp) {
    NodeIndex node = node_for(target, at.shadow, at.python);
    target.tree.set_device(node, device);
    return node;
  }
  const ContextNode &own = ContextTree::instance().node(at.shadow);
  const ContextNode *named = naming_frame(own.parent);
  const ContextNode &kernel = named ? *named : own;
  Leaf leaf{kernel.name, device, find_variant(variant)};
  return leaf_node(target, {kernel.parent, at.python, 0}, leaf);
}

void SessionTree::add_count(uint32_t number, const CountRecord &record) {
  const ContextNode &own = ContextTree::instance().node(record.at.shadow);
  bool is_scope = record.kind == RangeKind::kScope;
  if (own.generation < generation_ || (is_scope && !shows(own.kind)))
    return;
  Phase &target = phase(number);
  ++target.revision;
  NodeIndex node = range_node(target, record.kind, record.at, record.variant);
  target.tree.metrics().add(node, MetricName::numbered(record.metric), record.count);
}

const ContextNode *SessionTree::naming_frame(ContextId at) const {
  const ContextNode &frame = ContextTree::instance().node(at);
  bool is_named = at != 0 && frame.kind == FrameKind::kKernel && frame.generation >= generation_;
  return is_named ? &frame : nullptr;
}

NodeIndex SessionTree::leaf_node(Phase &target, const Capture &above, const Leaf &leaf) const {
  NodeIndex parent = node_for(target, above.shadow, above.python);
  CallPathTree &tree = target.tree;
  int32_t variant = leaf.variant ? tree.variant(parent, leaf.name, *leaf.variant) : kNone;
  return tree.child(parent, leaf.name, FrameKind::kKernel, leaf.device, variant);
}

VariantRecord SessionTree::renamed(VariantRecord variant, const KernelRecord &record,
                                   const Name &shown) {
  if (record.name && !variant.raw_name && shown.text() != record.name)
    variant.raw_name = record.name;
  return variant;
}

bool SessionTree::add_signature(VariantRecord &variant, const ContextNode *named) const {
  const VariantRecord *shapes =
      named && has(ContextSource::kShapes) ? find_variant(named->variant) : nullptr;
  if (shapes)
    variant.signature = shapes->signature;
  return shapes != nullptr;
}

// Upstream does not demangle.
Name SessionTree::name_of(const KernelRecord &record) const {
  if (!record.name)
    return Name("<unknown kernel>");
  return upstream_shape_ ? Name(KernelTimes::raw_name(record)) : Name(record.name);
}

NodeIndex SessionTree::kernel_node(Phase &target, const LaunchRecord &launch,
                                   const KernelRecord &record) const {
  const Capture &at = launch.at;
  const ContextNode *named = naming_frame(at.shadow);
  Leaf leaf;
  leaf.name = named ? named->name : name_of(record);
  leaf.device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
  leaf.variant = record.variant;
  VariantRecord known; // what the launch knew goes first
  if (record.variant) {
    known = renamed(*record.variant, record, leaf.name);
    leaf.variant = &known;
    if (launch.code != 0) {
      auto code = static_cast<uint16_t>(launch.code);
      known.code_hash = code_hash(code);
      known.config = code_config(code);
    }
  }
  if (add_signature(known, named))
    leaf.variant = &known;
  return leaf_node(target, {named ? named->parent : at.shadow, at.python, at.epoch}, leaf);
}

NodeIndex SessionTree::any_leaf(Phase &target, const Capture &at, const char *kernel) const {
  const ContextNode *named = naming_frame(at.shadow);
  Leaf leaf;
  leaf.name = named ? named->name : Name(kernel ? kernel : "<unknown kernel>");
  leaf.device = kNone;
  return leaf_node(target, {named ? named->parent : at.shadow, at.python, at.epoch}, leaf);
}

void SessionTree::add_cycles(uint32_t number, const CycleRecord &record) {
  Phase &target = phase(number);
  ++target.revision;
  proton::add_cycles(target.tree, any_leaf(target, record.at, record.kernel), record);
}

bool SessionTree::add_timeline(uint32_t number, const TimelineRecord &record) {
  if (!keeps_timeline_)
    return true;
  Phase &target = phase(number);
  ++target.revision;
  int32_t device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
  return target.timeline.add(any_leaf(target, record.at, record.kernel), device, record);
}

std::optional<TimelineLaunch> SessionTree::own_scopes(uint32_t number,
                                                      const TimelineRecord &record) {
  Phase &target = phase(number);
  ++target.revision;
  int32_t device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
  return target.timeline.own(any_leaf(target, record.at, record.kernel), device, record);
}

SessionTree::FoundLeaf &SessionTree::slot_for(Phase &target, const FoundLeaf &wanted) {
  if (target.found.empty())
    target.found.resize(kFoundLeaves);
  uint64_t hash = wanted.identity * 0x9E3779B97F4A7C15ull;
  hash ^= (uint64_t{wanted.shadow} << 32 | wanted.python) * 0xC2B2AE3D27D4EB4Full;
  hash ^= wanted.code * 0x9E3779B1ull;
  return target.found[(hash >> 32) & (kFoundLeaves - 1)];
}

NodeIndex SessionTree::add_kernel(uint32_t number, const LaunchRecord &launch,
                                  const KernelRecord &record) {
  return add_counted(number, launch, record, nullptr);
}

template <typename Record>
void SessionTree::keep_run(uint32_t number, NodeIndex node, const LaunchRecord &launch,
                           const Record &record) {
  if (keeps_runs_ && runs_.size() < kMostRuns)
    runs_.push_back({phase(number).tree.nodes()[node].name, launch.correlation_id, launch.called_ns,
                     record.start_ns, record.end_ns});
}

NodeIndex SessionTree::add_counted(uint32_t number, const LaunchRecord &launch,
                                   const KernelRecord &record, const GraphPlace *place) {
  NodeIndex node = add_found(number, launch, record, place);
  keep_run(number, node, launch, record);
  if (counters_) [[unlikely]] {
    int32_t device = phase(number).tree.nodes()[node].device;
    if (device == kNone)
      device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
    counters_->add(number, node, device, record.start_ns, record.end_ns);
  }
  return node;
}

void SessionTree::begin_burst(const char *device_kind, int32_t device_index, int64_t at_ns) {
  if (!counters_)
    counters_ = std::make_unique<CounterLog>();
  counters_->begin(DeviceTable::instance().find_or_add(device_kind, device_index), at_ns);
}

bool SessionTree::end_burst(const std::shared_ptr<const CounterBurst> &burst, uint32_t phase) {
  int32_t device = DeviceTable::instance().find_or_add(burst->device_kind, burst->device_index);
  return counters_ && counters_->end(device, burst, phase);
}

NodeIndex SessionTree::add_found(uint32_t number, const LaunchRecord &launch,
                                 const KernelRecord &record, const GraphPlace *place) {
  Phase &target = phase(number);
  ++target.revision;
  int64_t duration_ns = record.end_ns - record.start_ns;
  const char *name = record.name ? record.name : "";
  auto find_leaf = [&] {
    return place ? graph_leaf(target, launch, *place, record) : kernel_node(target, launch, record);
  };
  if (record.identity == 0) {
    NodeIndex node = find_leaf();
    target.add_time(node, duration_ns);
    target.devices.add(target.devices.leaf(target.tree, node, record.device_kind, name),
                       record.start_ns, record.end_ns, launch.called_ns);
    return node;
  }
  FoundLeaf wanted;
  wanted.identity = record.identity;
  wanted.shadow = launch.at.shadow;
  wanted.python = launch.at.python;
  wanted.code = place ? place->id : launch.code;
  wanted.is_node = place != nullptr;
  FoundLeaf &leaf = slot_for(target, wanted);
  if (!leaf.is_same(wanted)) {
    wanted.node = find_leaf();
    wanted.times = &target.times(wanted.node);
    wanted.use = &target.devices.leaf(target.tree, wanted.node, record.device_kind, name);
    leaf = wanted;
  }
  target.add_time(leaf.node, *leaf.times, duration_ns);
  target.devices.add(*leaf.use, record.start_ns, record.end_ns, launch.called_ns);
  return leaf.node;
}

NodeIndex SessionTree::Phase::add_copy(NodeIndex parent, const CopyRecord &record,
                                       int64_t called_ns) {
  ++revision;
  int32_t device = DeviceTable::instance().find_or_add(record.device_kind, record.device_index);
  NodeIndex node = tree.child(parent, Name(record.name), FrameKind::kCopy, device);
  tree.set_device(node, device);
  add_time(node, record.end_ns - record.start_ns);
  devices.add(devices.leaf(tree, node, record.device_kind, nullptr), record.start_ns, record.end_ns,
              called_ns);
  static const MetricName &bytes = MetricName::of(kBytes, Aggregation::kInclusive);
  tree.metrics().add(node, bytes, static_cast<int64_t>(record.bytes));
  return node;
}

NodeIndex SessionTree::add_copy(uint32_t number, const LaunchRecord &launch,
                                const CopyRecord &record) {
  Phase &target = phase(number);
  NodeIndex above = node_for(target, launch.at.shadow, launch.at.python);
  NodeIndex node = target.add_copy(above, record, launch.called_ns);
  keep_run(number, node, launch, record);
  return node;
}

void SessionTree::add_metric(uint32_t number, const Capture &at, const UserMetric &metric) {
  Phase &target = phase(number);
  ++target.revision;
  bool is_work = metric.metric == &work_metric();
  if (is_work && !has(ContextSource::kShapes))
    return; // another session's
  NodeIndex node = node_for(target, at.shadow, at.python);
  if (is_work)
    target.work.add(node, std::get<int64_t>(metric.value));
  else
    target.tree.metrics().add(node, *metric.metric, metric.value);
}

MemoryUse &SessionTree::memory(uint32_t number) {
  Phase &target = phase(number);
  if (!target.memory)
    target.memory = std::make_unique<MemoryUse>();
  return *target.memory;
}

NodeIndex SessionTree::memory_node(uint32_t number, ContextId shadow, ContextId python) {
  Phase &target = phase(number);
  if (has(ContextSource::kPython) || python == 0)
    return node_for(target, shadow, python);
  uint64_t key = (uint64_t{shadow} << 32) | python;
  auto cached = target.paths.find(key);
  if (cached != target.paths.end())
    return cached->second;
  const ContextTree &contexts = ContextTree::instance();
  ContextId line = python;
  while (line != 0 && is_of_library(contexts.node(line).name.text()))
    line = contexts.node(line).parent;
  NodeIndex node = node_for(target, shadow, 0);
  if (line != 0)
    node = target.tree.child(node, contexts.node(line).name, FrameKind::kPython);
  target.paths.emplace(key, node);
  return node;
}

NodeIndex SessionTree::unplaced_memory_node(uint32_t number) {
  static const Name unplaced("<allocated while not recorded>");
  return phase(number).tree.child(kRootNode, unplaced, FrameKind::kPython);
}

// Work of graphs: below the launch, on the path of its capture.

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
      node = child_of(target.tree, node, contexts.node(*id));
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
  VariantRecord known = record.variant ? renamed(*record.variant, record, name) : VariantRecord();
  if (add_signature(known, named) || record.variant)
    variant = target.tree.variant(parent, name, known);
  return target.tree.child(parent, name, FrameKind::kKernel, device, variant);
}

NodeIndex SessionTree::graph_node(uint32_t number, const LaunchRecord &launch) {
  return captured_node(phase(number), launch, {});
}

NodeIndex SessionTree::add_node(uint32_t number, const LaunchRecord &launch,
                                const GraphPlace &place, const KernelRecord &record) {
  return add_counted(number, launch, record, &place);
}

NodeIndex SessionTree::add_node(uint32_t number, const LaunchRecord &launch,
                                const GraphPlace &place, const CopyRecord &record) {
  Phase &target = phase(number);
  NodeIndex above = graph_parent(target, launch, place);
  NodeIndex node = target.add_copy(above, record, launch.called_ns);
  keep_run(number, node, launch, record);
  return node;
}

void SessionTree::add_metric(uint32_t number, const LaunchRecord &launch, const GraphPlace &place,
                             const UserMetric &metric) {
  Phase &target = phase(number);
  ++target.revision;
  bool is_work = metric.metric == &work_metric();
  if (is_work && !has(ContextSource::kShapes))
    return; // another session's
  NodeIndex node = captured_node(target, launch, place);
  if (is_work)
    return target.work.add(node, std::get<int64_t>(metric.value));
  if (const ContextNode *named = naming_frame(place.at->shadow)) // they are that kernel's
    node = child_of(target.tree, node, *named);
  target.tree.metrics().add(node, *metric.metric, metric.value);
}

// Samples of the host.

NodeIndex SessionTree::host_node(Phase &target, const Capture &at) const {
  // Scopes have times of their own only where a backend records those.
  if (at.shadow != 0 && records_wall_)
    if (NodeIndex node = node_for(target, at.shadow, at.python); node != kRootNode)
      return node;
  constexpr uint64_t kBelow = uint64_t{ContextTree::kStale} << 32; // no shadow context has it
  static const Name not_recorded(kNotRecorded);
  const ContextTree &contexts = ContextTree::instance();
  const ContextNode &open = contexts.node(at.shadow);
  bool is_op = open.kind == FrameKind::kOp || open.kind == FrameKind::kContextOp;
  auto below_line = [&](NodeIndex line) {
    return is_op ? target.tree.child(line, open.name, FrameKind::kOp) : line;
  };
  auto cached = target.paths.find(kBelow | at.python);
  if (cached != target.paths.end())
    return below_line(cached->second);
  std::vector<ContextId> frames;
  for (ContextId id = at.python; id != 0; id = contexts.node(id).parent)
    frames.push_back(id);
  NodeIndex node = target.tree.child(kRootNode, not_recorded, FrameKind::kPython);
  for (auto id = frames.rbegin(); id != frames.rend(); ++id)
    node = target.tree.child(node, contexts.node(*id).name, contexts.node(*id).kind);
  target.paths.emplace(kBelow | at.python, node);
  return below_line(node);
}

void SessionTree::add_sample(uint32_t number, const HostSample &sample) {
  Phase &target = phase(number);
  ++target.revision;
  NodeIndex node = host_node(target, sample.at);
  MetricColumns &metrics = target.tree.metrics();
  const char *name = sample.is_main ? kHostWall : kOtherThreads;
  metrics.add_int(metrics.builtin(name, Aggregation::kInclusive), node,
                  sample.end_ns - sample.start_ns);
  if (sample.is_main)
    target.host_idle.add_sample(node, sample.start_ns, sample.end_ns);
}

// Samples of program counters.

void SessionTree::begin_samples() {
  for (auto &[number, target] : phases_) {
    const auto &columns = target->tree.metrics().columns();
    if (target->time_column != kUnknownColumn)
      target->sampled_ns = columns[target->time_column].ints;
  }
}

void SessionTree::end_samples() {
  for (auto &[number, target] : phases_)
    target->sampled_ns = {};
}

void SessionTree::add_samples(uint32_t number, std::span<const PcSampleRecord> records,
                              const KernelTimes &all) {
  LeavesByKernel leaves;
  for (auto &[each, target] : phases_)
    if (target->time_column != kUnknownColumn)
      collect_leaves(target->tree, target->sampled_ns, target->time_column, leaves);
  for (auto &[each, target] : phases_)
    ++target->revision;
  for (const PcSampleRecord &record : records) {
    std::vector<SampledLeaf> shares = shares_of(record, leaves, all);
    if (shares.empty()) { // no session saw it being launched
      Phase &target = phase(number);
      NodeIndex node = target.tree.child(kRootNode, Name(record.kernel), FrameKind::kKernel);
      shares.push_back({&target.tree, node, 1});
    }
    proton::add_samples(record, shares);
  }
}

void SessionTree::add_samples(uint32_t number, const PcSampleRecord &record) {
  Phase &target = phase(number);
  ++target.revision;
  NodeIndex node = any_leaf(target, record.at, record.kernel);
  proton::add_samples(record, {{&target.tree, node, 1}});
}

} // namespace proton
