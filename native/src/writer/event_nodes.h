// The frames that the events of a timeline stand for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/timeline_event.h"

namespace proton {

/// Nodes of one phase, in the order in which batches bring them. A number that no batch brought
/// stands for the root.
class EventNodes {
public:
  EventNodes();
  void add(const std::vector<EventNode> &nodes);

  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t known(uint32_t node) const { return node < nodes_.size() ? node : 0; }
  const Name &name(uint32_t node) const { return nodes_[known(node)].name; }
  FrameKind kind(uint32_t node) const { return nodes_[known(node)].kind; }
  uint32_t parent(uint32_t node) const { return nodes_[known(node)].parent; }
  /// The names from the root to the node as a JSON list, valid UTF-8.
  std::string call_stack(uint32_t node) const;

private:
  std::vector<EventNode> nodes_;
};

} // namespace proton
