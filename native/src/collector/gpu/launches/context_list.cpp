#include "collector/gpu/launches/context_list.h"

#include <algorithm>

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

} // namespace proton
