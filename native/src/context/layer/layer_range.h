// Layers as frames of the calling thread: their forward pass, and nodes of a backward pass.
#pragma once

#include <cstdint>

#include "context/layer/layer_path.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"

namespace proton {

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
