// Profile buffers of the launches of one stream, or of one stream in one captured graph. A buffer
// is taken before a launch and given back when its reduction is queued behind it; the stream's
// order does the rest.
#pragma once

#include <memory>
#include <vector>

#include "collector/instrumentation/device_context.h"

namespace proton {

struct ScratchBuffer {
  cuda::DevicePointer address = 0;
  size_t bytes = 0;
  bool is_taken = false;
  bool is_outgrown = false; ///< only waits for the stream to be done with it
  bool is_dirty = false;    ///< may show programs of a launch that was never reduced
};

/// [the runtime's lock held, context current]
class ScratchPool {
public:
  ScratchPool(DeviceContext &context, bool is_of_graph)
      : context_(context), is_of_graph_(is_of_graph) {}

  /// A buffer that holds so many bytes. Throws Error(kUnavailable) without memory.
  ScratchBuffer &take(size_t bytes);
  void give_back(ScratchBuffer &buffer) noexcept { buffer.is_taken = false; }
  /// Frees buffers that were replaced by larger ones. [the context is idle]
  void free_outgrown() noexcept {
    free_if([](const ScratchBuffer &b) { return b.is_outgrown; });
  }
  /// Frees every buffer. A graph's stay: it may be launched at any later time. [context idle]
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
        context_.free(buffer->address);
        buffer.reset();
      }
    std::erase(buffers_, nullptr);
  }

  DeviceContext &context_;
  bool is_of_graph_;
  std::vector<std::unique_ptr<ScratchBuffer>> buffers_; ///< few: launches that nest or overlap
};

} // namespace proton
