#include "collector/gpu/launches/launch_log.h"

#include <algorithm>

#include "context/thread/current.h"
#include "driver/own_work.h"
#include "support/clock.h"

namespace proton {

void ContextList::add(LaunchThread &thread, void *context) noexcept {
  bool is_new = false;
  try {
    std::lock_guard lock(mutex_);
    is_new = context && std::find(contexts_.begin(), contexts_.end(), context) == contexts_.end();
    if (is_new)
      contexts_.push_back(context);
    thread.context = context;
    thread.context_generation = generation_.load(std::memory_order_relaxed);
  } catch (...) { // no memory: the next launch tries again
    return;
  }
  NewContextListener *listener = is_new ? listener_.load() : nullptr;
  if (listener)
    listener->launching_in(context);
}

void ContextList::forget(void *context) noexcept {
  std::lock_guard lock(mutex_);
  std::erase(contexts_, context);
  generation_.fetch_add(1, std::memory_order_relaxed);
}

void ContextList::forget_all() noexcept {
  std::lock_guard lock(mutex_);
  contexts_.clear();
  generation_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<void *> ContextList::list() const {
  std::lock_guard lock(mutex_);
  return contexts_;
}

namespace {

constexpr int64_t kLongestCallNs = 1'000'000'000;

} // namespace

void LaunchLog::arm() noexcept {
  armed_ns_.store(monotonic_ns(), std::memory_order_relaxed);
  is_armed_.store(true, std::memory_order_release);
}

void LaunchLog::observe(int64_t now_ns) noexcept {
  int64_t armed_ns = armed_ns_.load(std::memory_order_relaxed);
  if (settled_since_ns_ == armed_ns)
    return;
  bool is_settled = now_ns - armed_ns > kLongestCallNs;
  settled_from_ = is_settled ? ids_.above_all() : 0;
  settled_since_ns_ = is_settled ? armed_ns : 0;
}

void LaunchLog::enter(const VendorCall &call, LaunchKind kind, uint32_t code) noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread) {
    sink_.dropped({"no memory for a launching thread", 1, true});
    return;
  }
  enter_call(*thread);
  thread->launch_id = 0;
  if (!is_armed_.load(std::memory_order_acquire))
    return;
  uint64_t id = ids_.widen_newest(call.correlation_id);
  contexts_.note(*thread, call.context);
  thread->is_kernel = kind == LaunchKind::kKernel;
  thread->is_captured = false;
  thread->launch_id = id;
  if (is_own_work() && kind != LaunchKind::kGraph) // graphs are the target's
    sink_.launched_own(id, kind);
  else
    sink_.launched(id, kind, code);
}

void LaunchLog::leave(bool has_failed) noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return;
  if (thread->launch_id != 0 && (thread->is_captured || has_failed))
    sink_.retracted(thread->launch_id);
  else if (thread->launch_id != 0 && session_state().wants_timeline)
    sink_.returned(thread->launch_id);
  thread->launch_id = 0;
  thread->leave();
}

bool LaunchLog::captured() noexcept {
  LaunchThread *thread = this_launch_thread();
  if (!thread || thread->launch_id == 0)
    return false;
  thread->is_captured = true;
  return thread->is_kernel;
}

} // namespace proton
