// Keeps threads of the target from beginning driver calls for a moment.
#pragma once

#include <atomic>
#include <cstdint>

#include "context/python/python_lock.h"

namespace proton {

struct LaunchThread;

/// While one lives, no watched call begins: its thread waits at the entry, where it has no lock of
/// the driver yet. CUPTI needs that to switch PC sampling: it takes its own lock, then one of the
/// driver. A launch takes them in the other order, and both would wait for ever.
class LaunchHold {
public:
  /// Waits for open calls and for holds of other threads, not longer than `limit_ms`. A thread that
  /// holds may hold once more.
  explicit LaunchHold(uint32_t limit_ms);
  ~LaunchHold();
  LaunchHold(const LaunchHold &) = delete;
  LaunchHold &operator=(const LaunchHold &) = delete;

  /// Whether no other thread is in a watched call.
  bool is_complete() const { return is_complete_; }

  /// Read at the entry of a watched call, after its thread noted that it is inside.
  static bool is_set() noexcept { return is_set_.load(std::memory_order_relaxed); }
  /// Notes that the calling thread is outside until no other thread holds.
  static void wait_outside(LaunchThread &thread) noexcept;
  /// Called in a forked child, where the holder does not exist.
  static void forget_after_fork() noexcept;

private:
  static std::atomic<bool> is_set_;
  WithoutPythonLock unlocked_; ///< a call that is open may need it to end
  bool is_first_ = false;      ///< of its thread
  bool is_complete_ = false;
};

} // namespace proton
