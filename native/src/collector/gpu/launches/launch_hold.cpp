#include "collector/gpu/launches/launch_hold.h"

#include <ctime>
#include <mutex>

#include "collector/gpu/launches/launch_thread.h"
#include "support/clock.h"

namespace proton {
namespace {

// Longer than any hold; a target must not stand still for ever for the sake of samples.
constexpr int64_t kLongestWaitNs = 30'000'000'000;
constexpr timespec kBetweenLooks{0, 20'000};

std::mutex &holder() {
  static auto *mutex = new std::mutex; // outlives threads of the target
  return *mutex;
}

bool lock_holder(uint32_t limit_ms) noexcept {
  const int64_t end_ns = monotonic_ns() + int64_t{limit_ms} * 1'000'000;
  while (!holder().try_lock()) {
    if (monotonic_ns() >= end_ns)
      return false;
    nanosleep(&kBetweenLooks, nullptr);
  }
  return true;
}

thread_local const LaunchHold *t_mine = nullptr;

} // namespace

std::atomic<bool> LaunchHold::is_set_{false};

LaunchHold::LaunchHold(uint32_t limit_ms) {
  if (t_mine) {
    is_complete_ = t_mine->is_complete_;
    return;
  }
  if (!lock_holder(limit_ms))
    return;
  is_first_ = true;
  t_mine = this;
  is_set_.store(true, std::memory_order_seq_cst);
  try {
    is_complete_ = wait_for_open_calls(limit_ms);
  } catch (...) { // no memory: the threads inside are not known
  }
}

LaunchHold::~LaunchHold() {
  if (!is_first_)
    return;
  is_set_.store(false, std::memory_order_release);
  t_mine = nullptr;
  holder().unlock();
}

void LaunchHold::forget_after_fork() noexcept {
  is_set_.store(false, std::memory_order_relaxed);
  t_mine = nullptr;
}

void LaunchHold::wait_outside(LaunchThread &thread) noexcept {
  if (t_mine)
    return;
  const int64_t end_ns = monotonic_ns() + kLongestWaitNs;
  while (is_set() && monotonic_ns() < end_ns) {
    thread.leave();
    {
      WithoutPythonLock unlocked; // the thread is outside while it takes it back, too
      while (is_set() && monotonic_ns() < end_ns)
        nanosleep(&kBetweenLooks, nullptr);
    }
    thread.enter();
  }
}

} // namespace proton
