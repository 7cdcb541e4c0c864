// Samples of program counters in the trees of a session: which leaves they may belong to.
#include <algorithm>
#include <map>
#include <string_view>

#include "aggregate/kernels/kernel_times.h"
#include "aggregate/kernels/sampled_kernel.h"
#include "aggregate/tree/session_tree.h"
#include "record/device.h"

namespace proton {
namespace {

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

/// The leaves of a kernel with the time that counts, and a place for what is nobody's.
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

} // namespace

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
    if (shares.empty()) { // nobody saw it being launched
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
