// The group of the collective that a thread makes, as libtorch notes it for its own tools (NCCL).
#pragma once

#include <cstdint>
#include <string_view>

namespace proton {

struct CommGroup {
  std::string_view name; ///< as torch.distributed names it; "": unknown. Valid in the same callback
  uint32_t ranks = 0;    ///< 0: unknown
};

/// Finds out where this libtorch has what the next function reads: libtorch itself makes an object
/// with known values. False, and groups stay unknown, where that is not certain. [one thread at a
/// time, libtorch loaded]
bool find_comm_groups() noexcept;
/// The group of the calling thread's collective.
CommGroup current_comm_group() noexcept;

} // namespace proton
