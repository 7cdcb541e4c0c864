// Where launches happen: contexts, each with the buffers of its streams and captured graphs.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "collector/instrumentation/buffers/device_context.h"

namespace proton {

// Totals of kernels in the memory of a device: one place per kernel and place of its launches.
// Reductions add to them until they are harvested.

struct TotalsKey {
  const InstrumentedKernel *kernel = nullptr;
  Capture at;
  uint64_t capture_id = 0; ///< of the graph that is captured; 0 if there is none
};

/// What was added since the last harvest.
struct HarvestedTotals {
  std::shared_ptr<const InstrumentedKernel> kernel;
  Capture at;
  KernelTotals totals;
  std::vector<ScopeTotals> scopes;
};

/// [the runtime's lock held, context current]
class TotalsStore {
public:
  explicit TotalsStore(DeviceContext &context) : context_(context) {}

  /// The totals' place on the device, cleared if it is new. Throws Error(kUnavailable).
  cuda::DevicePointer find(const std::shared_ptr<const InstrumentedKernel> &kernel,
                           const Capture &at, uint64_t capture_id);
  /// Takes over what reductions added; running ones lose nothing. Throws Error(kUnavailable) if
  /// some could not be read, after the others were.
  void harvest(std::vector<HarvestedTotals> &to);
  /// Frees places whose epoch is over. [no reduction into them runs or follows]
  void forget_before(EpochId epoch);
  /// Frees everything but what graphs may still add to. [the context is idle]
  void free_all() noexcept;

  size_t bytes() const;
  size_t graph_bytes() const;

private:
  struct Slab {
    cuda::DevicePointer address = 0;
    uint64_t *copy = nullptr; ///< on the host
    size_t used = 0;
    bool is_of_graphs = false;
  };
  struct Place {
    std::shared_ptr<const InstrumentedKernel> kernel;
    size_t slab = 0;
    size_t offset = 0;
  };
  struct Hash {
    size_t operator()(const TotalsKey &key) const noexcept;
  };
  struct Equal {
    bool operator()(const TotalsKey &left, const TotalsKey &right) const noexcept;
  };
  using Places = std::unordered_map<TotalsKey, Place, Hash, Equal>;

  Place make_place(const std::shared_ptr<const InstrumentedKernel> &kernel, bool is_of_graph);
  size_t find_slab(size_t bytes, bool is_of_graph);
  void copy_slab(const Slab &slab);
  void read(const TotalsKey &key, const Place &place, std::vector<HarvestedTotals> &to) const;

  DeviceContext &context_;
  std::vector<Slab> slabs_;
  Places places_;
  std::map<size_t, std::vector<std::pair<size_t, size_t>>> free_; ///< (slab, offset) by bytes
};

// Profile buffers of the launches of one stream, or of one stream in one captured graph. A buffer
// is taken before a launch and given back when its reduction is queued behind it; the stream's
// order does the rest. A buffer that the copy stream works with stays in use until that is done:
// meanwhile launches get other buffers, up to a bound, beyond which their stream waits.

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

/// The state of one context.
class ContextPlaces {
public:
  ContextPlaces(const CudaDriver &work, void *context) : device_(work, context), totals_(device_) {}

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
  explicit LaunchPlaces(const CudaDriver &work) : work_(work) {}

  /// The calling thread's context. Throws Error(kUnavailable) without one.
  ContextPlaces &current();
  std::vector<ContextPlaces *> list() const;

private:
  const CudaDriver &work_;
  std::map<void *, std::unique_ptr<ContextPlaces>> contexts_; ///< few, and never removed
};

} // namespace proton
