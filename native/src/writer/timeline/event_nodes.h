// The frames that events of a timeline belong to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/timeline_event.h"

namespace proton {

/// Nodes of one phase, in the order in which batches bring them. A number that no batch brought
/// means the root.
class EventNodes {
public:
  EventNodes();
  void add(const std::vector<EventNode> &nodes);
  /// A frame that no batch brings, such as a scope inside a kernel; made if it is new.
  uint32_t child(uint32_t parent, const Name &name);

  /// The node itself, or the root for an unknown number.
  uint32_t known(uint32_t node) const;
  const Name &name(uint32_t node) const { return at(node).node.name; }
  FrameKind kind(uint32_t node) const { return at(node).node.kind; }
  uint32_t parent(uint32_t node) const { return at(node).node.parent; }
  /// Number of frames above it; 0 for the root.
  uint32_t depth(uint32_t node) const { return at(node).depth; }
  /// The names from the root to the node as a JSON list, valid UTF-8; without an autotuner's trials
  /// if `upstream_shape`.
  std::string call_stack(uint32_t node, bool upstream_shape = false) const;

private:
  struct Entry {
    EventNode node;
    uint32_t depth = 0;
  };
  static constexpr uint32_t kMade = 0x80000000u; ///< numbers of nodes that no batch brought

  const Entry &at(uint32_t node) const;
  Entry entry(uint32_t parent, const Name &name, FrameKind kind) const;

  std::vector<Entry> brought_;
  std::vector<Entry> made_;
  std::map<std::pair<uint32_t, const void *>, uint32_t> made_numbers_;
};

} // namespace proton
