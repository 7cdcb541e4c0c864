// Collective operations of torch.distributed: the ranges that its backends open around them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "record/collective_log.h"

namespace proton {

/// One between its begin and its end.
struct OpenCollective {
  Collective call;
  bool is_launched = false;   ///< its range ends once a kernel is launched, not when it has run
  uint64_t newest_kernel = 0; ///< of the calling thread, before
};

/// Begins the collective of a range with this name; empty where it is none, or without memory.
/// `record_function` is libtorch's, which has the tensors; null: they are not known.
/// [thread that calls it]
std::optional<OpenCollective> begin_collective(std::string_view name,
                                               const void *record_function) noexcept;
/// Ends it, on any thread; one that is launched on that of its begin.
void end_collective(const OpenCollective &open) noexcept;

/// Bytes of an element of a type by its short name, such as "bf16"; 1 where that has no number.
uint64_t bytes_of_type(std::string_view type) noexcept;

} // namespace proton
