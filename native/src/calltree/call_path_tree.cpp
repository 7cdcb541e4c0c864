#include "calltree/call_path_tree.h"

#include <algorithm>
#include <functional>

namespace proton {
namespace {

constexpr int64_t kLongestNs = int64_t{1} << 42; // over an hour: the clocks disagree

void add_saturating(int64_t &sum, int64_t value) {
  if (__builtin_add_overflow(sum, value, &sum))
    sum = INT64_MAX;
}

} // namespace

bool LaunchLatency::add(int64_t latency_ns) {
  if (latency_ns < 0 || latency_ns > kLongestNs) {
    ++clamped;
    return false;
  }
  min_ns = count == 0 ? latency_ns : std::min(min_ns, latency_ns);
  max_ns = std::max(max_ns, latency_ns);
  ++count;
  add_saturating(sum_ns, latency_ns);
  uint32_t place = bucket(latency_ns);
  if (place >= buckets.size())
    buckets.resize(place + 1);
  ++buckets[place];
  return true;
}

void LaunchLatency::merge(const LaunchLatency &other) {
  clamped += other.clamped;
  if (other.count == 0)
    return;
  min_ns = count == 0 ? other.min_ns : std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
  count += other.count;
  add_saturating(sum_ns, other.sum_ns);
  buckets.resize(std::max(buckets.size(), other.buckets.size()));
  for (size_t i = 0; i < other.buckets.size(); ++i)
    buckets[i] += other.buckets[i];
}

namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 32);
}

/// Not 0, which stands for all.
uint64_t shapes_key(std::string_view shapes) { return std::hash<std::string_view>()(shapes) | 1; }

Variant owned(const VariantRecord &record) {
  Variant variant;
  variant.code_hash = record.code_hash;
  std::copy(std::begin(record.grid), std::end(record.grid), std::begin(variant.grid));
  std::copy(std::begin(record.block), std::end(record.block), std::begin(variant.block));
  variant.shared_bytes = record.shared_bytes;
  variant.signature = record.signature ? record.signature : "";
  variant.registers = record.registers;
  variant.local_bytes = record.local_bytes;
  variant.raw_name = record.raw_name ? record.raw_name : "";
  variant.config = record.config ? record.config : "";
  return variant;
}

} // namespace

size_t CallPathTree::ChildKeyHash::operator()(const ChildKey &key) const noexcept {
  return mix(mix(key.parent, reinterpret_cast<uintptr_t>(key.name)), key.rest);
}

CallPathTree::CallPathTree() {
  TreeNode root;
  root.name = Name("ROOT");
  root.kind = FrameKind::kRoot;
  nodes_.push_back(std::move(root));
}

CallPathTree CallPathTree::copy_for_writing() const {
  CallPathTree copy;
  copy.nodes_ = nodes_;
  copy.variants_ = variants_;
  copy.metrics_ = metrics_;
  copy.device_use_ = device_use_;
  return copy;
}

NodeIndex CallPathTree::append(NodeIndex parent, const Name &name, FrameKind kind, int32_t device,
                               int32_t variant) {
  auto index = static_cast<NodeIndex>(nodes_.size());
  TreeNode node;
  node.parent = parent;
  node.name = name;
  node.kind = kind;
  node.device = device;
  node.variant = variant;
  nodes_.push_back(std::move(node));
  TreeNode &above = nodes_[parent];
  if (above.last_child == kNoNode)
    above.first_child = index;
  else
    nodes_[above.last_child].next_sibling = index;
  above.last_child = index;
  return index;
}

NodeIndex CallPathTree::child(NodeIndex parent, const Name &name, FrameKind kind, int32_t device,
                              int32_t variant) {
  // 8 bits of kind, 24 of device, 32 of variant.
  uint64_t rest = static_cast<uint64_t>(kind) |
                  (uint64_t{static_cast<uint32_t>(device) & 0xffffff} << 8) |
                  (uint64_t{static_cast<uint32_t>(variant)} << 32);
  ChildKey key{parent, name.key(), rest};
  auto found = children_.find(key);
  if (found != children_.end())
    return found->second;
  if (kind != FrameKind::kKernel) {
    NodeIndex index = append(parent, name, kind, device, variant);
    children_.emplace(key, index);
    return index;
  }
  NodeIndex *any = &leaves_[ChildKey{parent, name.key(), 0}].first;
  if (*any != kNoNode && device == kNone && variant == kNone)
    return *any;
  NodeIndex *alike = any; // of the same shapes
  auto place = static_cast<size_t>(variant);
  if (variant != kNone && place < variants_.size() && !variants_[place].signature.empty())
    alike = &leaves_[ChildKey{parent, name.key(), shapes_key(variants_[place].signature)}].first;
  for (NodeIndex *first : {alike, any}) {
    if (*first == kNoNode || nodes_[*first].device != kNone || nodes_[*first].variant != kNone)
      continue;
    // So far the leaf holds only metrics of the launch; this record names the device.
    nodes_[*first].device = device;
    nodes_[*first].variant = variant;
    children_.emplace(key, *first);
    return *first;
  }
  NodeIndex index = append(parent, name, kind, device, variant);
  for (NodeIndex *first : {alike, any})
    *first = *first == kNoNode ? index : *first;
  children_.emplace(key, index);
  return index;
}

NodeIndex CallPathTree::kernel(NodeIndex parent, const Name &name, std::string_view shapes) {
  NodeIndex &first = leaves_[ChildKey{parent, name.key(), shapes_key(shapes)}].first;
  if (first == kNoNode)
    first = append(parent, name, FrameKind::kKernel, kNone, kNone);
  return first;
}

int32_t CallPathTree::variant(NodeIndex parent, const Name &name, const VariantRecord &record) {
  std::vector<int32_t> &known = leaves_[ChildKey{parent, name.key(), 0}].known;
  Variant wanted = owned(record);
  for (int32_t position : known)
    if (variants_[static_cast<size_t>(position)] == wanted)
      return position;
  if (known.size() > kMaxVariantsPerPath)
    return known.back(); // "other"
  if (known.size() == kMaxVariantsPerPath) {
    wanted = Variant{};
    wanted.signature = "other";
  }
  // Variants repeat on many paths; a linear search over the table is bounded by that reuse.
  auto found = std::find(variants_.begin(), variants_.end(), wanted);
  auto position = static_cast<int32_t>(found - variants_.begin());
  if (found == variants_.end())
    variants_.push_back(std::move(wanted));
  known.push_back(position);
  return position;
}

} // namespace proton
