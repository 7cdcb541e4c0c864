#include "writer/event_nodes.h"

#include "writer/json_text.h"
#include "writer/utf8_text.h"

namespace proton {

EventNodes::EventNodes() { nodes_.push_back({0, Name("ROOT"), FrameKind::kRoot}); }

void EventNodes::add(const std::vector<EventNode> &nodes) {
  for (const EventNode &node : nodes) {
    nodes_.push_back(node);
    // A parent comes before its children, so that every path ends at the root.
    if (node.parent >= nodes_.size() - 1)
      nodes_.back().parent = 0;
  }
}

std::string EventNodes::call_stack(uint32_t node) const {
  std::vector<uint32_t> path; // innermost first
  for (node = known(node); node != 0; node = nodes_[node].parent)
    path.push_back(node);
  path.push_back(0);
  std::string text = "[";
  std::string scratch;
  for (auto frame = path.rbegin(); frame != path.rend(); ++frame) {
    text += frame == path.rbegin() ? "" : ",";
    append_json_text(text, valid_utf8(nodes_[*frame].name.text(), scratch));
  }
  text += ']';
  return text;
}

} // namespace proton
