// Scopes, ops and kernels of the calling thread: opening and closing one, with its records.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "context/thread/shadow_stack.h"
#include "record/record.h"
#include "support/name.h"

namespace proton {

struct ThreadState;

/// An open frame on the calling thread's stack. Inactive when no session listened at its start.
struct OpenRange {
  uint64_t scope_id = 0; ///< of the frame: another one may stand at its depth by now; 0: inactive
  uint32_t depth = 0;    ///< of the stack before the frame was opened

  bool is_open() const noexcept { return scope_id != 0; }
};

/// When a range ran.
struct RangeTimes {
  int64_t end_ns = 0; ///< of TickClock; 0: unknown
  int64_t duration_ns = 0;
  int64_t self_ns = 0; ///< duration less that of nested ranges of the same collector
};

/// Opens a frame; a failure (no memory) leaves the range inactive. [launching thread, noexcept]
OpenRange enter_range(std::string_view name, FrameKind kind) noexcept;
/// Records the range and closes its frame. The record belongs to the epoch in which the range
/// ended. A frame with a scope or range above that is still open only leaves when it comes to the
/// top: closing the scope belongs to the program. False: a session listens, but somebody closed the
/// frame before, so that nothing was recorded. [launching thread, noexcept]
bool exit_range(const OpenRange &range, RangeKind kind, const RangeTimes &times,
                int32_t variant) noexcept;
/// Closes the frame in the same way and records nothing. [launching thread, noexcept]
void abandon_range(const OpenRange &range) noexcept;

/// A frame of a path that outlives the stack on which it stood.
struct NamedFrame {
  Name name;
  FrameKind kind = FrameKind::kScope;
  uint32_t birth = 0; ///< serial of the newest session when it was opened; 0: take today's
};
/// The frames open on the calling thread, with those of the thread it follows, outermost first.
std::vector<NamedFrame> current_path();
/// Number of the calling thread.
uint32_t this_thread_number();
/// Records a range that ended away from the stack where it began, in the epoch of now, for the
/// thread with this number. [any thread, noexcept]
void record_range(std::span<const NamedFrame> path, RangeKind kind, const RangeTimes &times,
                  uint32_t thread) noexcept;

/// Opens a scope on the calling thread's stack. Call only while a session is active.
StackEntry &open_scope(HashedName name, FrameKind kind, const Situation &now);
/// Closes the top frame of the calling thread's stack; a timed scope is recorded. The caller
/// checked that there is one.
void close_top(const Situation &now) noexcept;
/// Closes the scope at this place of the calling thread's stack, and the frames above it, but for
/// scopes that an object holds: these stay open until their own end, and what is below them leaves
/// the stack then.
void close_scope(uint32_t index, const Situation &now) noexcept;

/// A scope that an object of the program holds.
struct HeldScope {
  ThreadState *owner = nullptr; ///< on whose stack it was opened
  uint32_t index = 0;
  uint64_t id = 0;
};
/// Closes a scope of another thread, also of one that has ended: its time is recorded now, and the
/// thread takes it off its stack when it next opens, closes or launches something. Nothing where it
/// was closed before. [any thread]
void close_elsewhere(const HeldScope &scope) noexcept;
/// Where a scope stands that is open on any thread, or was when its thread ended; records of the
/// epoch may name it.
std::optional<ContextId> context_of_scope(uint64_t scope_id, EpochId epoch);

/// Closes the operators on top of the calling thread's stack: one that goes on elsewhere, or around
/// the end of a scope that is older, must not stand between the program and its scope.
void close_operators(const Situation &now) noexcept;

/// Opens a scope that a library of the target asks for. [launching thread, noexcept]
OpenRange enter_scope_range(std::string_view name) noexcept;
/// Closes it. False, and it stays open, while frames that were opened inside are: those belong to
/// somebody who will close them himself. [launching thread, noexcept]
bool exit_scope_range(const OpenRange &range) noexcept;

/// Told on the thread when it opens a scope that stands in no other (true), and when that is
/// closed. Null: nobody is told. [any thread]
using ScopeBorder = void (*)(bool opens) noexcept;
void set_scope_border(ScopeBorder border) noexcept;

/// Asks for the logs to be consumed soon; set by the session room.
using DrainRequest = void (*)() noexcept;
void set_drain_request(DrainRequest request) noexcept;
void request_drain() noexcept;

} // namespace proton
