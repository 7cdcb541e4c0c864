#include "writer/tree/merged_tree.h"

#include <functional>
#include <unordered_map>

namespace proton {
namespace {

struct GroupKey {
  NodeIndex parent;
  const void *name;
  FrameKind kind;
  int32_t device;
  bool operator==(const GroupKey &other) const = default;
};

struct GroupKeyHash {
  size_t operator()(const GroupKey &key) const noexcept {
    constexpr size_t kOdd = 0x9E3779B97F4A7C15ull; // 2^64 / golden ratio
    size_t rest = (static_cast<size_t>(key.parent) << 16) ^ (static_cast<size_t>(key.kind) << 8) ^
                  static_cast<size_t>(static_cast<uint32_t>(key.device));
    return (std::hash<const void *>()(key.name) ^ (rest * kOdd)) * kOdd;
  }
};

} // namespace

MergedTree::MergedTree(const CallPathTree &tree, uint32_t max_depth) {
  const std::vector<TreeNode> &nodes = tree.nodes();
  links_.resize(nodes.size());
  links_[kRootNode].head = kRootNode;
  std::unordered_map<GroupKey, NodeIndex, GroupKeyHash> heads;
  heads.reserve(nodes.size());
  // A node is always made after its parent, so parents have their heads already.
  for (NodeIndex index = kRootNode + 1; index < nodes.size(); ++index) {
    const TreeNode &node = nodes[index];
    NodeIndex parent = links_[node.parent].head;
    if (links_[parent].depth >= max_depth) {
      is_folded_ = true;
      join(parent, index);
      continue;
    }
    GroupKey key{parent, node.name.key(), node.kind, node.device};
    auto [found, is_new] = heads.try_emplace(key, index);
    if (is_new)
      open(parent, index);
    else
      join(found->second, index);
  }
}

void MergedTree::join(NodeIndex head, NodeIndex member) {
  Link &group = links_[head];
  links_[member].head = head;
  links_[group.last_member == kNoNode ? head : group.last_member].next_member = member;
  group.last_member = member;
}

void MergedTree::open(NodeIndex parent, NodeIndex head) {
  Link &above = links_[parent];
  Link &fresh = links_[head];
  fresh.head = head;
  fresh.parent = parent;
  fresh.depth = above.depth + 1;
  if (above.last_child == kNoNode)
    above.first_child = head;
  else
    links_[above.last_child].next_sibling = head;
  above.last_child = head;
}

} // namespace proton
