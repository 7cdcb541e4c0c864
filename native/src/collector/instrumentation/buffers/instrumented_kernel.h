// A loaded kernel that records, as the compiler's side describes it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collector/instrumentation/decoder/host_decoder.h"
#include "collector/instrumentation/device/reduce_task.h"
#include "record/cycle_record.h"

namespace proton {

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
