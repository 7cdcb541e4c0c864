// Layers as frames of the calling thread: their forward pass, and nodes of a backward pass.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "context/thread/current.h"
#include "context/thread/host_range.h"

namespace proton {

// The layers around a place of the target, and where each thread's forward pass met them.

/// A layer with those around it. Lives for ever, so that other threads can follow it; equal paths
/// are one object.
struct LayerPath {
  const LayerPath *outer = nullptr;
  uint32_t depth = 1;
  uint64_t hash = 0;    ///< of the name, as `hashed` gives it
  int32_t variant = -1; ///< of its arguments, as `intern_variant` numbers it
  std::string name;
};

/// The layer of that name inside of `outer`, which may be null, called with such arguments. Past 64
/// variants it is the one for others; past 65536 paths, or without memory, `outer` itself. [any
/// thread, noexcept] locks
const LayerPath *layer_below(const LayerPath *outer, std::string_view name,
                             int32_t variant = -1) noexcept;

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

/// A layer whose forward pass runs.
struct OpenLayer {
  OpenRange range;
  const LayerPath *outer = nullptr; ///< the thread's layers before
};
/// Opens the frame of the innermost layer of `path`, which stands in those of the thread. Call
/// while a session wants layers. [launching thread, noexcept]
OpenLayer enter_layer(const LayerPath *path, const SessionState &now) noexcept;
/// Closes it, and records when it ran where a session wants to know. [launching thread, noexcept]
void exit_layer(const OpenLayer &layer) noexcept;

/// Whether the innermost frame of the calling thread is a layer.
bool stands_in_layer() noexcept;

/// The frames around a node of a backward graph.
struct OpenBackward {
  uint64_t scope_id = 0;            ///< of the first; 0: none is open
  uint32_t depth = 0;               ///< of the stack before the first
  uint32_t count = 0;               ///< of the frames
  const LayerPath *outer = nullptr; ///< the thread's layers before

  bool is_open() const noexcept { return scope_id != 0; }
};
constexpr int64_t kNoNumber = -1;
/// Opens the layers in which a node was made, and "<backward>" inside: of them only those that the
/// thread does not work for already. A node without a number, as of a parameter, is of the layers
/// of the node before. [launching thread, noexcept]
///   node: its number, kNoNumber if it has none
///   thread: number of the thread that made it
OpenBackward enter_backward(int64_t node, uint64_t thread) noexcept;
void exit_backward(const OpenBackward &backward) noexcept;

} // namespace proton
