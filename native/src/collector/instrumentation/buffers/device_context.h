// A context of a device: our kernels in it, and zeroed memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collector/instrumentation/decoder/host_decoder.h"
#include "collector/instrumentation/device/reduce_task.h"
#include "driver/cuda/cuda_driver.h"
#include "record/cycle_record.h"

namespace proton {

/// Not copied: what it loaded keeps its place until `release`.
class DeviceContext {
public:
  /// Loads our kernels into the calling thread's context. Throws Error(kUnavailable) and then
  /// leaves nothing behind.
  DeviceContext(const CudaDriver &work, void *context);
  DeviceContext(const DeviceContext &) = delete;
  DeviceContext &operator=(const DeviceContext &) = delete;

  void *context() const { return context_; }
  int device() const { return device_; }
  uint32_t processors() const { return processors_; } ///< of the device, at least 1
  /// Whether kernels may end without every program having run (cluster launch control).
  bool may_skip_programs() const { return capability_major_ >= 10; }
  /// A stream of ours that does not wait for others.
  void *side_stream() const { return side_stream_; }
  /// A second one, for work that follows launches without being on their streams; null before
  /// `copy_stream`.
  void *made_copy_stream() const { return copy_stream_; }
  const CudaDriver &work() const { return work_; }

  // The context must be current in the following.

  /// Zeroed memory, also during a capture. Throws Error(kUnavailable).
  cuda::DevicePointer allocate(size_t bytes, const std::string &purpose) const;
  void free(cuda::DevicePointer memory) const noexcept;
  /// Memory of the host that the device can write. Throws Error(kUnavailable).
  void *allocate_host(size_t bytes, const std::string &purpose) const;
  void free_host(void *memory) const noexcept;

  /// Made by the first call. Throws Error(kUnavailable).
  void *copy_stream();
  /// An event without times. Throws Error(kUnavailable).
  void *make_event(const std::string &purpose) const;
  /// Whether the device has reached the event's newest record; false if the event cannot tell.
  bool is_over(void *event) const noexcept;

  cuda::Result reduce(const device::ReduceTask &task, const device::ReduceShape &shape,
                      void *stream) const noexcept;
  cuda::Result harvest(const device::HarvestTask &task, void *stream) const noexcept;
  cuda::Result anchor(const device::AnchorTask &task, void *stream) const noexcept;
  cuda::Result clear(cuda::DevicePointer memory, size_t bytes, void *stream) const noexcept;

  /// Releases what the constructor took; returns the number of failed calls. [nothing of ours runs]
  uint64_t release() noexcept;

private:
  void load();
  uint32_t attribute(cuda::DeviceAttribute which) const;

  const CudaDriver &work_;
  void *context_;
  int device_ = 0;
  uint32_t processors_ = 1;
  uint32_t capability_major_ = 0;
  void *module_ = nullptr;
  void *side_stream_ = nullptr;
  void *copy_stream_ = nullptr;
  void *reduce_ = nullptr;
  void *harvest_ = nullptr;
  void *anchor_ = nullptr;
};

// A loaded kernel that records, as the compiler's side describes it.

/// Does not change after `finish`.
struct InstrumentedKernel {
  std::string name;
  uint32_t scratch_bytes = 0;
  uint32_t warps = 0;
  std::vector<uint32_t> warp_ids; ///< that record; empty: all
  bool has_short_clock = false;
  uint32_t record_cost_cycles = 0;
  bool is_private = false;              ///< no session sees it: its totals are taken by `take`
  std::vector<std::string> scope_names; ///< by id; empty for an id without a name
  std::vector<uint32_t> scope_parents;  ///< by id
  std::vector<std::pair<uint32_t, uint32_t>> programs; ///< ranges that count; empty: all

  /// Checks what was set and derives the rest. Throws Error(kUsage).
  void finish();

  BufferLayout layout() const {
    return {scratch_bytes,   warps,
            warp_ids,        static_cast<uint32_t>(scope_names.size()),
            has_short_clock, record_cost_cycles};
  }
  size_t totals_bytes() const { return sizeof(KernelTotals) + scopes.size() * sizeof(ScopeTotals); }

  std::vector<CycleScope> scopes; ///< point to the names
  device::ReduceTask task{};      ///< all but the launch's own part
};

} // namespace proton
