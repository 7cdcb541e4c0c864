// The tree as `.hatchet` shows it: variants of one kernel are one node, deep levels are folded.
#pragma once

#include <cstdint>
#include <vector>

#include "calltree/call_path_tree.h"

namespace proton {

/// Groups the nodes of a tree. A group is named by its first node, its head. Other members differ
/// from the head in their variant only, or lie below `max_depth` and were folded into it.
class MergedTree {
public:
  /// The root has depth 0.
  MergedTree(const CallPathTree &tree, uint32_t max_depth);

  /// Children of a head, in order of insertion; kNoNode ends the list.
  NodeIndex first_child(NodeIndex head) const { return links_[head].first_child; }
  NodeIndex next_sibling(NodeIndex head) const { return links_[head].next_sibling; }
  /// The member after `node` in its group, the head being the first; kNoNode ends the list.
  NodeIndex next_member(NodeIndex node) const { return links_[node].next_member; }
  NodeIndex parent(NodeIndex head) const { return links_[head].parent; }
  bool is_folded() const { return is_folded_; }

private:
  struct Link {
    NodeIndex head = kNoNode;
    NodeIndex parent = kNoNode;
    NodeIndex first_child = kNoNode;
    NodeIndex last_child = kNoNode;
    NodeIndex next_sibling = kNoNode;
    NodeIndex next_member = kNoNode;
    NodeIndex last_member = kNoNode;
    uint32_t depth = 0;
  };
  void join(NodeIndex head, NodeIndex member);
  void open(NodeIndex parent, NodeIndex head);

  std::vector<Link> links_;
  bool is_folded_ = false;
};

} // namespace proton
