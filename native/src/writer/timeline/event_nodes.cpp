#include "writer/timeline/event_nodes.h"

#include <string_view>

#include "writer/bytes/json_text.h"

namespace proton {
namespace {

/// The frame of an autotuner's trials, which upstream does not have.
bool is_trials(FrameKind kind, std::string_view name) {
  return kind == FrameKind::kState && name == "<autotune>";
}

} // namespace

EventNodes::EventNodes() : brought_{{{0, Name("ROOT"), FrameKind::kRoot}, 0}} {}

const EventNodes::Entry &EventNodes::at(uint32_t node) const {
  uint32_t index = known(node);
  return (index & kMade) == 0 ? brought_[index] : made_[index ^ kMade];
}

uint32_t EventNodes::known(uint32_t node) const {
  bool is_known = (node & kMade) == 0 ? node < brought_.size() : (node ^ kMade) < made_.size();
  return is_known ? node : 0;
}

// A parent comes before its children, so that every path ends at the root.
EventNodes::Entry EventNodes::entry(uint32_t parent, const Name &name, FrameKind kind) const {
  return {{known(parent), name, kind}, depth(parent) + 1};
}

void EventNodes::add(const std::vector<EventNode> &nodes) {
  for (const EventNode &node : nodes)
    brought_.push_back(entry(node.parent, node.name, node.kind));
}

uint32_t EventNodes::child(uint32_t parent, const Name &name) {
  auto [found, is_new] = made_numbers_.try_emplace({parent, name.key()}, 0);
  if (is_new) {
    found->second = static_cast<uint32_t>(made_.size()) | kMade;
    made_.push_back(entry(parent, name, FrameKind::kScope));
  }
  return found->second;
}

std::string EventNodes::call_stack(uint32_t node, bool upstream_shape) const {
  std::vector<const Name *> path; // innermost first
  for (node = known(node); node != 0; node = parent(node))
    if (!upstream_shape || !is_trials(kind(node), name(node).text()))
      path.push_back(&name(node));
  path.push_back(&name(0));
  std::string text = "[";
  for (auto frame = path.rbegin(); frame != path.rend(); ++frame) {
    text += frame == path.rbegin() ? "" : ",";
    append_quoted(text, (*frame)->text());
  }
  text += ']';
  return text;
}

} // namespace proton
