#include "writer/tree/preorder_rows.h"

#include <algorithm>
#include <limits>

#include "support/error.h"
#include "writer/bytes/utf8_text.h"

namespace proton {

PreorderRows::PreorderRows(const CallPathTree &tree) : nodes_(tree.nodes()) {
  if (nodes_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error(ErrorCode::kOutput, "cannot encode the profile: it has " +
                                        std::to_string(nodes_.size()) +
                                        " call paths and the format ends at 2147483647; record "
                                        "fewer call paths or clear phases more often");
  }
  order.reserve(nodes_.size());
  row_of.resize(nodes_.size(), kNone);
  tree.walk(*this);
}

int32_t PreorderRows::string_index(const Name &name) {
  auto [found, is_new] =
      string_indexes_.try_emplace(name.key(), static_cast<int32_t>(strings.size()));
  if (is_new)
    strings.push_back(valid_utf8(name.text()));
  return found->second;
}

void PreorderRows::enter(NodeIndex index, uint32_t) {
  const TreeNode &node = nodes_[index];
  row_of[index] = static_cast<int32_t>(order.size());
  order.push_back(index);
  parents.push_back(node.parent == kNoNode ? kNone : row_of[node.parent]);
  frames.push_back(string_index(node.name));
  kinds.push_back(static_cast<uint8_t>(node.kind));
  device.push_back(device_index(node.device));
  variant.push_back(node.variant);
}

int32_t PreorderRows::device_index(int32_t position) {
  if (position < 0)
    return position;
  auto found = std::find(devices_used.begin(), devices_used.end(), position);
  auto index = static_cast<int32_t>(found - devices_used.begin());
  if (found == devices_used.end())
    devices_used.push_back(position);
  return index;
}

} // namespace proton
