// Scopes, ops and kernels of the calling thread: opening and closing one, with its records.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "context/thread/shadow_stack.h"
#include "record/record.h"
#include "support/name.h"

namespace proton {

// What a collector counts on each thread, as parts of the ranges that are open there.

/// Sets what the calling thread counted since it asked before. False: that is not known, or is part
/// of what the next call sets.
using CountSource = bool (*)(int64_t &count) noexcept;
/// Sets the source that is asked where timed ranges begin and end, and the name of the metric to
/// which its counts add; null: none. [any thread]
void set_count_source(CountSource source, std::string_view metric);
inline std::atomic<CountSource> g_count_source{nullptr}; ///< only for the function below
inline CountSource count_source() noexcept {
  return g_count_source.load(std::memory_order_acquire);
}

/// The open ranges of one thread. What is counted belongs to the innermost of them, so that the
/// counts of a range and those of all ranges inside add up to what was counted meanwhile.
class RangeCounts {
public:
  /// The top frame of the stack has been opened for a range. [owning thread, noexcept]
  void enter(CountSource source, ShadowStack &stack) noexcept;
  /// The count of the range whose frame is about to be closed, without those of ranges inside,
  /// until the next call; null: it is not known. [owning thread, noexcept]
  const int64_t *leave(CountSource source, ShadowStack &stack, uint64_t scope_id) noexcept;
  /// Adds what was counted since to the innermost range. [owning thread, noexcept]
  void take(CountSource source) noexcept;

private:
  struct Range {
    uint32_t index = 0; ///< of its frame
    uint64_t scope_id = 0;
    int64_t count = 0;
  };
  void close_ended(ShadowStack &stack) noexcept;

  std::vector<Range> open_;
  int64_t left_ = 0;
};

struct ThreadState;

/// An open frame on the calling thread's stack. Inactive if no session was active at its start.
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

/// Opens a frame; a failure (no memory) leaves the range inactive. One with another variant, as
/// `intern_variant` numbers them, is another path. [launching thread, noexcept]
OpenRange enter_range(std::string_view name, FrameKind kind, int32_t variant = -1) noexcept;
/// Records the range, in the epoch in which it ended, and closes its frame. Below a scope or range
/// that is still open, the frame leaves only when it comes to the top: the program closes that
/// scope. False if a session is active but the frame was closed before, so that nothing is
/// recorded. [launching thread, noexcept]
bool exit_range(const OpenRange &range, RangeKind kind, const RangeTimes &times,
                int32_t variant) noexcept;
/// Begins to time the top frame of the calling thread's stack, and to count inside.
void begin_timed_frame(StackEntry &top) noexcept;
/// Closes a frame in the same way and records it as a scope, if it has a start.
void exit_timed_range(const OpenRange &range) noexcept;
/// Closes the frame in the same way and records nothing. [launching thread, noexcept]
void abandon_range(const OpenRange &range) noexcept;

/// A frame of a path, valid without the stack on which it stood.
struct NamedFrame {
  Name name;
  FrameKind kind = FrameKind::kScope;
  uint32_t generation = 0; ///< serial of the newest session when it was opened; 0: take today's
  int32_t variant = -1;
};
/// The frames of the thread that this one follows and then its own, outermost first.
std::vector<NamedFrame> current_path();
/// Number of the calling thread.
uint32_t this_thread_number();
/// Records a range that ended away from the stack where it began, in the current epoch, for the
/// thread with this number. [any thread, noexcept]
void record_range(std::span<const NamedFrame> path, RangeKind kind, const RangeTimes &times,
                  uint32_t thread) noexcept;

/// Adds a number to a metric where the calling thread stands; nothing while no session is active.
void give_number(std::string_view metric, int64_t number);
/// Correlation id of the kernel that the calling thread launched last; 0: none that is recorded.
uint64_t newest_kernel_launch();

/// Opens a scope on the calling thread's stack. Call only while a session is active.
StackEntry &open_scope(HashedName name, FrameKind kind, const SessionState &before);
/// Closes the top frame of the calling thread's stack, which must exist; a timed scope is recorded.
void close_top(const SessionState &now) noexcept;
/// Closes the frame at this place, which must exist; those above it stay open. A timed scope is
/// recorded.
void close_frame(uint32_t index, const SessionState &now) noexcept;
/// The place of the innermost open frame that is neither a layer nor an operator: those close
/// themselves.
std::optional<uint32_t> innermost_of_program() noexcept;
/// Closes the scope at this place of the calling thread's stack and the frames above it. Scopes
/// that an object holds stay open until their own end, and frames below them leave the stack then.
void close_scope(uint32_t index, const SessionState &now) noexcept;

/// A scope that an object of the program holds.
struct HeldScope {
  ThreadState *owner = nullptr; ///< on whose stack it was opened
  uint32_t index = 0;
  uint64_t id = 0;
};
/// Closes a scope of another thread, which may have ended. The scope's time is recorded now; its
/// thread takes it off the stack when it next opens, closes or launches something. Does nothing if
/// the scope was closed before. [any thread]
void close_elsewhere(const HeldScope &scope) noexcept;
/// Context of a scope that is open on any thread, or was open when its thread ended. Records of the
/// epoch may name it.
std::optional<ContextId> context_of_scope(uint64_t scope_id, EpochId epoch);

/// Closes the operators on top of the calling thread's stack: one that goes on elsewhere, or past
/// the end of an older scope, must not stand between the program and its scope.
void close_operators(const SessionState &now) noexcept;

/// Opens a scope that a library of the target asks for. [launching thread, noexcept]
OpenRange enter_scope_range(std::string_view name) noexcept;
/// Closes it. False, and it stays open, while frames that were opened inside are open: their owners
/// close those. [launching thread, noexcept]
bool exit_scope_range(const OpenRange &range) noexcept;

/// Called on the thread that opens a scope outside of any other (true), or closes it (false). Null
/// removes the listener. [any thread]
using ScopeBorder = void (*)(bool opens) noexcept;
void set_scope_border(ScopeBorder border) noexcept;

/// Asks for the logs to be consumed soon; set by the session room.
using DrainRequest = void (*)() noexcept;
void set_drain_request(DrainRequest request) noexcept;
void request_drain() noexcept;

} // namespace proton
