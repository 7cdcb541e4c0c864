#include "context/layer/layer_range.h"

#include <vector>

#include "context/thread/thread_state.h"

namespace proton {
namespace {

constexpr std::string_view kBackward = "<backward>";

// Of the node that the thread ran last.
[[gnu::tls_model("initial-exec")]] thread_local const LayerPath *t_newest = nullptr;

/// The layers of `path` inside of those that it shares with `current`, innermost first.
std::vector<const LayerPath *> inside(const LayerPath *path, const LayerPath *current) {
  std::vector<const LayerPath *> layers;
  while (path != current) {
    if (!current || (path && path->depth >= current->depth)) {
      layers.push_back(path);
      path = path->outer;
    } else {
      current = current->outer;
    }
  }
  return layers;
}

} // namespace

[[gnu::hot]] OpenLayer enter_layer(const LayerPath *path, const SessionState &now) noexcept {
  OpenLayer layer;
  layer.outer = current_layers();
  if (!path || path == layer.outer)
    return layer; // no memory for it, or too many
  try {
    ShadowStack &stack = this_thread().stack;
    layer.range.depth = stack.depth();
    StackEntry &entry = stack.push({path->name, path->hash}, FrameKind::kLayer, now);
    layer.range.scope_id = entry.scope_id();
    if (now.wants_times)
      begin_timed_frame(entry);
    set_current_layers(path);
  } catch (...) { // no memory or too deep: what follows stays with the enclosing frame
  }
  return layer;
}

[[gnu::hot]] void exit_layer(const OpenLayer &layer) noexcept {
  if (!layer.range.is_open())
    return;
  exit_timed_range(layer.range);
  set_current_layers(layer.outer);
}

bool stands_in_layer() noexcept {
  if (!current_layers())
    return false;
  ShadowStack &stack = this_thread().stack; // made when the layer was entered
  return stack.depth() != 0 && stack.top().kind == FrameKind::kLayer;
}

OpenBackward enter_backward(int64_t node, uint64_t thread) noexcept {
  OpenBackward backward;
  SessionState now = session_state();
  if (!now.active || !now.wants_layers)
    return backward;
  if (node >= 0)
    t_newest = layers_of_node(static_cast<uint64_t>(node), thread);
  const LayerPath *path = t_newest;
  try {
    std::vector<const LayerPath *> layers = inside(path, current_layers());
    ShadowStack &stack = this_thread().stack;
    backward.outer = current_layers();
    backward.depth = stack.depth();
    auto open = [&](HashedName name) {
      const StackEntry &entry = stack.push(name, FrameKind::kLayer, now);
      backward.scope_id = backward.is_open() ? backward.scope_id : entry.scope_id();
      ++backward.count;
    };
    for (auto each = layers.rbegin(); each != layers.rend(); ++each)
      open({(*each)->name, (*each)->hash});
    static const HashedName kName = hashed(kBackward);
    open(kName);
    set_current_layers(path);
  } catch (...) { // no memory or too deep: what was opened is closed at the end
  }
  return backward;
}

void exit_backward(const OpenBackward &backward) noexcept {
  if (!backward.is_open())
    return;
  ShadowStack &stack = this_thread().stack;
  if (stack.find(backward.depth, backward.scope_id)) {
    for (uint32_t i = 0; i < backward.count && backward.depth + i < stack.depth(); ++i)
      stack.entry(backward.depth + i).set_start(StackEntry::kEnded);
    stack.pop_ended(session_state()); // frames that the program left open go first
  }
  set_current_layers(backward.outer);
}

} // namespace proton
