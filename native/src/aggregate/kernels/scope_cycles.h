// Cycles of scopes inside kernels as nodes and metrics of a call-path tree.
#pragma once

#include "calltree/call_path_tree.h"
#include "record/cycle_record.h"

namespace proton {

/// Adds a node per scope below the leaf of its kernel, along the scopes around it: `cycles`, what
/// they mean for one warp (`normalized_cycles`), how many pairs of records (`instances`) and how
/// they spread. The leaf gets the counts of what was recorded and lost.
void add_cycles(CallPathTree &tree, NodeIndex kernel, const CycleRecord &record);

/// Calls `lose(reason, count)` for each kind of records that were lost.
template <typename Lose> void count_losses(const KernelTotals &totals, Lose lose) {
  if (totals.lost_records != 0)
    lose("records inside kernels replaced by newer ones", totals.lost_records);
  if (totals.corrupt_programs != 0)
    lose("programs with unreadable records inside kernels", totals.corrupt_programs);
}

} // namespace proton
