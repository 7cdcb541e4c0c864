// Profile buffers of the launches of one stream, or of one stream in one captured graph. A buffer
// is taken before a launch and given back when its reduction is queued behind it; the stream's
// order does the rest. A buffer that the copy stream works with stays in use until that is done:
// meanwhile launches get other buffers, up to a bound, beyond which their stream waits.
#pragma once

#include <memory>
#include <vector>

#include "collector/instrumentation/buffers/device_context.h"

namespace proton {

struct ScratchBuffer {
  cuda::DevicePointer address = 0;
  size_t bytes = 0;
  bool is_taken = false;
  bool is_outgrown = false; ///< only waits for the stream to be done with it
  bool is_dirty = false;    ///< may show programs of a launch that was never reduced
  void *event = nullptr;    ///< of the newest step of its launch; null where nothing is copied
  bool is_copied = false;   ///< the copy stream has it, until the event is over
  bool is_stuck = false;    ///< it is not known when the copy stream is done with it
  uint64_t use = 0;         ///< of copied ones: the least was used first
};

/// [the runtime's lock held, context current]
class ScratchPool {
public:
  /// Buffers that one stream keeps so that its launches need not wait for copies.
  static constexpr size_t kMostCopied = 4;
  static constexpr size_t kMostCopiedBytes = size_t{256} << 20;
  static constexpr size_t kSpareBytes = size_t{64} << 20; ///< made at once

  ScratchPool(DeviceContext &context, bool is_of_graph)
      : context_(context), is_of_graph_(is_of_graph) {}

  /// A buffer of at least `bytes`, which the stream may write to from here on. `copies`: it may be
  /// handed to the copy stream. Throws Error(kUnavailable).
  ScratchBuffer &take(size_t bytes, void *stream, bool copies);
  /// Gives the buffer to the copy stream, which waits for what the stream was given. Throws
  /// Error(kUnavailable); the launch's stream then still has the buffer.
  void hand_over(ScratchBuffer &buffer, void *stream);
  /// Call when all that uses the buffer is queued.
  void give_back(ScratchBuffer &buffer) noexcept;
  /// Frees buffers that were replaced by larger ones. [the context is idle]
  void free_outgrown() noexcept {
    free_if([this](const ScratchBuffer &b) { return b.is_outgrown && is_free(b); });
  }
  /// Frees every buffer, except a graph's, which may be launched at any later time. [context idle]
  void free_all() noexcept {
    free_if([](const ScratchBuffer &) { return true; });
  }

  DeviceContext &context() const { return context_; }
  bool is_of_graph() const { return is_of_graph_; }
  size_t bytes() const;

private:
  template <typename Which> void free_if(Which &&which) noexcept {
    if (is_of_graph_)
      return;
    for (auto &buffer : buffers_)
      if (!buffer->is_taken && which(*buffer)) {
        free(*buffer);
        buffer.reset();
      }
    std::erase(buffers_, nullptr);
  }

  bool is_free(const ScratchBuffer &buffer) const noexcept {
    return !buffer.is_stuck && (!buffer.is_copied || context_.is_over(buffer.event));
  }
  ScratchBuffer *find(size_t bytes, bool is_copied) const;
  bool has_room(size_t bytes) const;
  ScratchBuffer &add(size_t bytes, bool copies);
  ScratchBuffer *try_add(size_t bytes);
  void add_spares(size_t bytes);
  ScratchBuffer *take_copied(size_t bytes, void *stream);
  void free(ScratchBuffer &buffer) const noexcept;

  DeviceContext &context_;
  bool is_of_graph_;
  uint64_t uses_ = 0;
  std::vector<std::unique_ptr<ScratchBuffer>> buffers_; ///< few: launches that nest or overlap
};

} // namespace proton
