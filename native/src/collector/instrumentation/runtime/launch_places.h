// Where launches happen: contexts, each with the buffers of its streams and captured graphs.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "collector/instrumentation/buffers/scratch_pool.h"
#include "collector/instrumentation/buffers/totals_store.h"

namespace proton {

/// The state of one context.
class ContextPlaces {
public:
  ContextPlaces(const CudaWork &work, void *context) : device_(work, context), totals_(device_) {}

  DeviceContext &device() { return device_; }
  TotalsStore &totals() { return totals_; }
  /// Id of the graph that the stream is captured into; 0 if it is not captured.
  uint64_t capture_of(void *stream);
  ScratchPool &pool(void *stream, uint64_t capture_id);
  /// Whether a capture that asked for a buffer is still open, so that waiting would end it.
  bool is_capturing();
  void free_outgrown() noexcept;
  /// Frees all memory but that of graphs. [the context is idle and current]
  void free_all() noexcept;

  size_t bytes() const;
  size_t graph_bytes() const;
  uint64_t unread = 0; ///< launches whose records were reduced, but not handed on

private:
  struct OpenCapture {
    void *stream;
    uint64_t id;
  };
  using PoolKey = std::tuple<void *, uint64_t, uint64_t>; // stream, its id, capture

  DeviceContext device_;
  TotalsStore totals_;
  std::map<PoolKey, std::unique_ptr<ScratchPool>> pools_;
  std::vector<OpenCapture> captures_;
};

class LaunchPlaces {
public:
  explicit LaunchPlaces(const CudaWork &work) : work_(work) {}

  /// The calling thread's context. Throws Error(kUnavailable) without one.
  ContextPlaces &current();
  std::vector<ContextPlaces *> list() const;

private:
  const CudaWork &work_;
  std::map<void *, std::unique_ptr<ContextPlaces>> contexts_; ///< few, and never removed
};

} // namespace proton
