// The layers around a place of the target, and where each thread's forward pass met them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace proton {

/// A layer with those around it. Lives for ever, so that other threads can follow it; equal paths
/// are one object.
struct LayerPath {
  const LayerPath *outer = nullptr;
  uint32_t depth = 1;
  uint64_t hash = 0; ///< of the name, as `hashed` gives it
  std::string name;
};

/// The layer of that name inside of `outer`, which may be null. Past 65536 paths, or without
/// memory, `outer` itself. [any thread, noexcept] locks
const LayerPath *layer_below(const LayerPath *outer, std::string_view name) noexcept;

/// How the target numbers the nodes of its backward graph: the number that the next node of the
/// calling thread gets, and the number of that thread.
struct NodeNumbers {
  uint64_t (*next_node)() = nullptr;
  uint64_t (*thread)() = nullptr;
};
/// Nothing is noted while they are null. [any thread]
void set_node_numbers(const NodeNumbers &numbers) noexcept;

/// The layers that the calling thread works for; null: none.
const LayerPath *current_layers() noexcept;
/// Changes them. Nodes that the thread makes from now on belong to the new ones.
void set_current_layers(const LayerPath *path) noexcept;
/// The layers in which a thread of the target made a node; null outside of all, and when that is
/// too long ago: a thread remembers its last 32768 changes. [any thread]
const LayerPath *layers_of_node(uint64_t node, uint64_t thread) noexcept;

/// Called in a forked child.
void reset_layers_after_fork() noexcept;

} // namespace proton
