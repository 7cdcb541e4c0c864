#include "aggregate/tree/op_work.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace proton {
namespace {

constexpr std::array<std::string_view, 5> kFlops = {"flops", "flops8", "flops16", "flops32",
                                                    "flops64"};
constexpr long double kLargest = 9.2e18L;
constexpr long double kLeastFlops = 0.5L;

struct KnownValue {
  bool is_known = false;
  WorkValue value;
};
std::vector<KnownValue> &known_values() {
  static auto *values = new std::vector<KnownValue>; // the target's threads may need it to the end
  return *values;
}

const MetricName &derived_flops() {
  static const MetricName &name = MetricName::of("derived_flops", Aggregation::kInclusive);
  return name;
}

MetricValue number(long double amount) {
  if (amount < kLargest && amount > -kLargest)
    return static_cast<int64_t>(amount);
  return static_cast<double>(amount);
}

/// The flops that each node has itself.
std::vector<long double> own_flops(const CallPathTree &tree) {
  std::vector<long double> sums(tree.nodes().size());
  for (const MetricColumn &column : tree.metrics().columns()) {
    if (std::find(kFlops.begin(), kFlops.end(), column.name) == kFlops.end())
      continue;
    for (NodeIndex node = 0; node < column.held.size(); ++node) {
      if (column.holds(node) == MetricColumn::Held::kInt)
        sums[node] += static_cast<long double>(column.ints[node]);
      else if (column.holds(node) == MetricColumn::Held::kDouble)
        sums[node] += static_cast<long double>(column.doubles[node]);
    }
  }
  return sums;
}

/// The kernel below each node, kernels themselves included: kRootNode for none, kNoNode for
/// several.
std::vector<NodeIndex> only_kernels(const std::vector<TreeNode> &nodes) {
  std::vector<NodeIndex> found(nodes.size(), kRootNode);
  for (size_t node = nodes.size(); node-- > 1;) {
    if (nodes[node].kind == FrameKind::kKernel)
      found[node] = static_cast<NodeIndex>(node);
    NodeIndex &above = found[nodes[node].parent];
    if (found[node] != kRootNode)
      above = above == kRootNode ? found[node] : kNoNode;
  }
  return found;
}

} // namespace

const MetricName &work_metric() {
  static const MetricName &name = MetricName::of("<work of operators>", Aggregation::kInclusive);
  return name;
}

void set_work_value(int32_t work, const WorkValue &value) {
  std::vector<KnownValue> &values = known_values();
  auto place = static_cast<size_t>(work);
  if (place >= values.size())
    values.resize(place + 1);
  values[place] = {true, value};
}

void OpWork::collect() {
  const std::vector<KnownValue> &values = known_values();
  std::erase_if(counts_, [&](const auto &count) {
    auto work = static_cast<uint32_t>(count.first);
    if (work >= values.size() || !values[work].is_known)
      return false;
    const WorkValue &value = values[work].value;
    if (value.metric)
      sums_[{static_cast<NodeIndex>(count.first >> 32), value.metric}] +=
          static_cast<long double>(count.second) * static_cast<long double>(value.amount);
    return true;
  });
}

void OpWork::publish(CallPathTree &tree) {
  if (counts_.empty() && sums_.empty())
    return;
  collect();
  if (sums_.empty())
    return;
  std::vector<long double> named = own_flops(tree);
  for (const auto &[place, amount] : written_)
    if (place.second != &derived_flops())
      named[place.first] -= amount;
  const std::vector<TreeNode> &nodes = tree.nodes();
  std::vector<bool> is_named(named.size());          // by one above
  for (size_t node = 1; node < named.size(); ++node) // nodes stand behind their parents
    is_named[node] = is_named[nodes[node].parent] || named[nodes[node].parent] > kLeastFlops;
  for (size_t node = named.size(); node-- > 1;)
    named[nodes[node].parent] += named[node];
  std::vector<NodeIndex> kernels = only_kernels(nodes);
  std::map<Place, long double> wanted;
  for (const auto &[place, amount] : sums_) {
    NodeIndex node = place.first;
    bool is_derived = is_named[node] || named[node] > kLeastFlops;
    if (!is_derived && nodes[node].kind == FrameKind::kOp && kernels[node] != kNoNode)
      node = kernels[node] == kRootNode ? node : kernels[node];
    wanted[{node, is_derived ? &derived_flops() : place.second}] += amount;
  }
  for (const auto &[place, amount] : written_)
    wanted.try_emplace(place, 0.0L);
  for (const auto &[place, amount] : wanted)
    if (long double more = amount - written_[place]; more != 0.0L)
      tree.metrics().add(place.first, *place.second, number(more));
  written_ = std::move(wanted);
}

} // namespace proton
