// Totals of kernels in the memory of a device: one place per kernel and place of its launches.
// Reductions add to them until they are harvested.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "collector/instrumentation/buffers/device_context.h"

namespace proton {

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

  bool has_graphs() const { return has_graphs_; }
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
  bool has_graphs_ = false;
};

} // namespace proton
