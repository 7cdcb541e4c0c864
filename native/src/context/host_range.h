// Scopes, ops and kernels of the calling thread: opening and closing one, with its records.
#pragma once

#include <cstdint>
#include <string_view>

#include "context/shadow_stack.h"
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

/// Opens a scope on the calling thread's stack. Call only while a session is active.
StackEntry &open_scope(HashedName name, FrameKind kind, const Situation &now);
/// Closes the top frame of the calling thread's stack; a timed scope is recorded. The caller
/// checked that there is one.
void close_top(const Situation &now) noexcept;

/// Asks for the logs to be consumed soon; set by the session room.
using DrainRequest = void (*)() noexcept;
void set_drain_request(DrainRequest request) noexcept;
void request_drain() noexcept;

} // namespace proton
