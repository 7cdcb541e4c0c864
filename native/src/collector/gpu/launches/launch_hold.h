// Keeps threads of the target from beginning calls of the driver for a moment.
#pragma once

#include <atomic>
#include <cstdint>

#include "context/python/python_lock.h"

namespace proton {

struct LaunchThread;

/// While one lives, no watched call begins: its thread waits at the entry, where it has no lock of
/// the driver yet. CUPTI's switches of PC sampling need that. They take a lock of CUPTI, then one
/// of the driver; a launch takes them the other way round, and both wait for ever.
class LaunchHold {
public:
  /// Waits for the calls of other threads that are open, and for others who hold, not longer than
  /// `limit_ms`. A thread that holds may hold once more.
  explicit LaunchHold(uint32_t limit_ms);
  ~LaunchHold();
  LaunchHold(const LaunchHold &) = delete;
  LaunchHold &operator=(const LaunchHold &) = delete;

  /// No other thread is in a watched call.
  bool is_complete() const { return is_complete_; }

  /// At the entry of a watched call, after its thread said that it is inside.
  static bool is_set() noexcept { return is_set_.load(std::memory_order_relaxed); }
  /// Has the calling thread, which said so, be outside until nobody else holds.
  static void wait_outside(LaunchThread &thread) noexcept;
  /// In the child, where whoever held does not exist.
  static void forget_after_fork() noexcept;

private:
  static std::atomic<bool> is_set_;
  WithoutPythonLock unlocked_; ///< a call that is open may need it to end
  bool is_first_ = false;      ///< of its thread
  bool is_complete_ = false;
};

} // namespace proton
