// The contexts that had a launch: a flush has to wait for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "collector/gpu/launches/launch_thread.h"

namespace proton {

/// Receives new contexts. [launching thread, inside of a watched call]
class NewContextListener {
public:
  virtual ~NewContextListener() = default;
  virtual void launching_in(void *context) noexcept = 0;
};

class ContextList {
public:
  /// Notes that the thread launches in the context. Locks at its first launch there only.
  /// [launching thread, noexcept]
  void note(LaunchThread &thread, void *context) noexcept {
    uint32_t generation = generation_.load(std::memory_order_relaxed);
    if (thread.context != context || thread.context_generation != generation)
      add(thread, context);
  }
  /// Set the listener that `note` calls when a thread first launches in a context, before the
  /// launch goes on; null removes it.
  void set_listener(NewContextListener *listener) noexcept { listener_.store(listener); }
  void forget(void *context) noexcept;
  void forget_all() noexcept;
  std::vector<void *> list() const;

private:
  void add(LaunchThread &thread, void *context) noexcept;
  mutable std::mutex mutex_;
  std::vector<void *> contexts_;
  std::atomic<uint32_t> generation_{1}; ///< of what threads remember
  std::atomic<NewContextListener *> listener_{nullptr};
};

} // namespace proton
