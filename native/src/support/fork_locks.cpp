#include "support/fork_locks.h"

#include <array>
#include <atomic>
#include <ctime>
#include <new>

#include "support/clock.h"

namespace proton {
namespace {

constexpr int64_t kPatience_ns = 1'000'000'000;
constexpr timespec kPause{0, 50'000};

// Plain slots: a list would need a lock of its own, which would have to be taken before all others.
std::array<std::atomic<std::mutex *>, kLockRanks> g_guarded{};

struct Taken {
  std::mutex *mutex = nullptr;
  bool held = false;
};
// Written between lock_for_fork and unlock_*; the C library runs one fork at a time.
std::array<Taken, kLockRanks> g_taken{};
bool g_was_in_a_change = false; ///< set in a child, before it has another thread

std::atomic<std::mutex *> &slot(LockRank rank) { return g_guarded[static_cast<size_t>(rank)]; }

bool lock_within(std::mutex &mutex, int64_t deadline_ns) noexcept {
  while (!mutex.try_lock()) {
    if (monotonic_ns() >= deadline_ns)
      return false;
    nanosleep(&kPause, nullptr);
  }
  return true;
}

void unlock(bool in_child) noexcept {
  for (size_t i = kLockRanks; i-- > 0;) {
    Taken &taken = g_taken[i];
    if (taken.held)
      taken.mutex->unlock();
    else if (taken.mutex && in_child) {
      new (taken.mutex) std::mutex;
      g_was_in_a_change = true;
    }
    taken = Taken{};
  }
}

} // namespace

void guard_across_fork(std::mutex &mutex, LockRank rank) noexcept {
  slot(rank).store(&mutex, std::memory_order_release);
}

void forget_across_fork(LockRank rank) noexcept {
  slot(rank).store(nullptr, std::memory_order_release);
}

void lock_for_fork() noexcept {
  int64_t deadline_ns = monotonic_ns() + kPatience_ns;
  for (size_t i = 0; i < kLockRanks; ++i) {
    std::mutex *mutex = g_guarded[i].load(std::memory_order_acquire);
    g_taken[i] = {mutex, mutex && lock_within(*mutex, deadline_ns)};
  }
}

void unlock_in_parent() noexcept { unlock(false); }

void unlock_in_child() noexcept { unlock(true); }

bool was_forked_in_a_change() noexcept { return g_was_in_a_change; }

} // namespace proton
