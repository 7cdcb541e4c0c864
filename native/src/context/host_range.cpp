#include "context/host_range.h"

#include <atomic>

#include "context/thread_state.h"

namespace proton {
namespace {

std::atomic<DrainRequest> g_drain_request{nullptr};

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
    bool is_unwanted = kind == RangeKind::kScope && !now.wants_wall;
    RangeRecord record;
    record.at.shadow = thread.stack.top().id.load(std::memory_order_relaxed);
    record.at.python = now.wants_python ? capture_current().python : 0;
    record.at.epoch = now.epoch;
    record.kind = kind;
    record.variant = variant;
    record.duration_ns = duration_ns;
    record.self_ns = self_ns;
    chunk_filled = !is_unwanted && thread.ranges.append(record);
  }
  thread.stack.pop_to(range.depth, now);
  if (chunk_filled)
    request_drain();
}

} // namespace proton
