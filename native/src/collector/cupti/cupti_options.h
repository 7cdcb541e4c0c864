// What the cupti backend is asked to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/shared_library.h"

namespace proton {

struct CuptiOptions {
  std::vector<LibraryCandidate> candidates; ///< where libcupti may be, in order
  /// Of one activity buffer. 64 MB ones lengthen the measured kernels by 7 %, 1 to 8 MB do not; of
  /// those the smallest keeps the launches that wait for records within the processor's caches.
  size_t buffer_bytes = size_t{1} << 20;
  uint32_t flush_period_ms = 100; ///< full buffers come at least this often; 0: as CUPTI likes
  bool copies = false;            ///< also record copies and sets of memory
  bool whole_graphs = false;      ///< one record per launch of a graph, not one per node
  bool nvtx = false;              ///< NVTX ranges of the target are scopes
  bool vendor_clock = false;      ///< convert CUPTI's own time instead of giving it ours
  bool hardware_trace = false;    ///< new GPUs take the times of kernels themselves
  bool finalizes = false;         ///< detach CUPTI from the process at the end
};

} // namespace proton
