// Ranges of host time that a collector opens and closes on the calling thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "context/current.h"
#include "record/record.h"

namespace proton {

/// An open frame on the calling thread's stack. Inactive when no session listened at its start.
struct OpenRange {
  uint32_t depth = 0; ///< of the stack before the frame was opened
  bool is_open = false;
};

/// Opens a frame; a failure (no memory) leaves the range inactive. [launching thread, noexcept]
OpenRange enter_range(std::string_view name, FrameKind kind) noexcept;
/// Records the range and closes its frame with whatever was left open above it. The record belongs
/// to the epoch in which the range ended. [launching thread, noexcept]
void exit_range(const OpenRange &range, RangeKind kind, int64_t duration_ns, int64_t self_ns,
                int32_t variant) noexcept;

/// Asks for the logs to be consumed soon; set by the session room.
using DrainRequest = void (*)() noexcept;
void set_drain_request(DrainRequest request) noexcept;
void request_drain() noexcept;

} // namespace proton
