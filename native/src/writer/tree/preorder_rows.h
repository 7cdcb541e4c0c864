// The structure of a tree as flat arrays: what a `.proton` file stores.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "calltree/call_path_tree.h"

namespace proton {

/// One row per node, parents before children and subtrees contiguous; row 0 is the root.
struct PreorderRows {
  /// Throws Error(kOutput) past 2^31 - 1 nodes.
  explicit PreorderRows(const CallPathTree &tree);

  std::vector<NodeIndex> order;      ///< node of each row
  std::vector<int32_t> row_of;       ///< row of each node
  std::vector<int32_t> parents;      ///< row of the parent, -1 for the root
  std::vector<int32_t> frames;       ///< position in `strings`
  std::vector<uint8_t> kinds;        ///< FrameKind
  std::vector<int32_t> device;       ///< position in `devices_used`, or -1
  std::vector<int32_t> devices_used; ///< positions in the DeviceTable, in order of appearance
  std::vector<int32_t> variant;      ///< position in the variants, or -1
  std::vector<std::string> strings;  ///< valid UTF-8

  /// Position of the text in `strings`; a new text is added.
  int32_t string_index(const Name &name);

  /// Called by CallPathTree::walk.
  void enter(NodeIndex node, uint32_t depth);
  void leave(NodeIndex, uint32_t) {}

private:
  int32_t device_index(int32_t position);

  const std::vector<TreeNode> &nodes_;
  std::unordered_map<const void *, int32_t> string_indexes_;
};

} // namespace proton
