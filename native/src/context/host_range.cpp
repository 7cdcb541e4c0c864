#include "context/host_range.h"

#include <atomic>

#include "context/thread_state.h"
#include "support/clock.h"

namespace proton {
namespace {

std::atomic<DrainRequest> g_drain_request{nullptr};

RangeRecord record_of(ContextId id, RangeKind kind, EpochId epoch) {
  RangeRecord record;
  record.at.shadow = id;
  record.at.epoch = epoch;
  record.kind = kind;
  return record;
}

bool is_scope(const StackEntry &entry) {
  return entry.kind == FrameKind::kScope || entry.kind == FrameKind::kTest;
}

} // namespace

void set_drain_request(DrainRequest request) noexcept {
  g_drain_request.store(request, std::memory_order_release);
}

void request_drain() noexcept {
  if (DrainRequest request = g_drain_request.load(std::memory_order_acquire))
    request();
}

OpenRange enter_range(std::string_view name, FrameKind kind) noexcept {
  OpenRange range;
  Situation now = situation();
  if (!now.active)
    return range;
  try {
    ShadowStack &stack = this_thread().stack;
    range.depth = stack.depth();
    stack.push(hashed(name), kind, now);
    range.is_open = true;
  } catch (...) { // no memory or too deep: the time stays with the enclosing range
  }
  return range;
}

void exit_range(const OpenRange &range, RangeKind kind, int64_t duration_ns, int64_t self_ns,
                int32_t variant) noexcept {
  if (!range.is_open)
    return;
  ThreadState &thread = this_thread();
  if (thread.stack.depth() <= range.depth)
    return; // somebody else closed the frame, e.g. a fork cleared the stack
  Situation now = situation();
  bool chunk_filled = false;
  if (now.active) {
    thread.stack.pop_to(range.depth + 1, now);
    RangeRecord record = record_of(thread.stack.top().id.load(), kind, now.epoch);
    record.at.python = now.wants_python ? capture_current().python : 0;
    record.variant = variant;
    record.duration_ns = duration_ns;
    record.self_ns = self_ns;
    chunk_filled = thread.ranges.append(record);
  }
  thread.stack.pop_to(range.depth, now);
  if (chunk_filled)
    request_drain();
}

StackEntry &open_scope(HashedName name, FrameKind kind, const Situation &now) {
  ThreadState &thread = this_thread();
  StackEntry &entry = thread.stack.push(name, kind, now);
  bool is_filled = entry.is_first_use &&
                   thread.ranges.append(record_of(entry.id.load(), RangeKind::kSeen, now.epoch));
  if (is_filled) // in a program of ever new names no other record may ever ask
    request_drain();
  if (now.wants_wall)
    entry.start_ns = monotonic_ns();
  return entry;
}

void close_top(const Situation &now) noexcept {
  ThreadState &thread = this_thread();
  const StackEntry &entry = thread.stack.top();
  ContextId id = entry.id.load(std::memory_order_relaxed);
  bool was_scope = is_scope(entry) && !entry.is_noop;
  int64_t start_ns = entry.start_ns;
  bool is_first_use = thread.stack.pop(now);
  bool chunk_filled = false;
  if (start_ns != 0 && now.wants_wall) {
    RangeRecord record = record_of(id, RangeKind::kScope, now.epoch);
    record.duration_ns = record.self_ns = monotonic_ns() - start_ns;
    chunk_filled = thread.ranges.append(record);
  } else if (was_scope && is_first_use && now.active) {
    chunk_filled = thread.ranges.append(record_of(id, RangeKind::kSeen, now.epoch));
  }
  if (chunk_filled)
    request_drain();
}

} // namespace proton
