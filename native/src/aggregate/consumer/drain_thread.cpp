#include "aggregate/consumer/drain_thread.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "aggregate/consumer/aggregator.h"

namespace proton {
namespace {

// Requests come with filled chunks of records, some 20 kB each. Consuming them empties the caches
// of the processor on which it happens, so it is done for many at once; a flush consumes the rest.
constexpr uint32_t kFewestRequests = 64;
constexpr uint32_t kMostRequests = 512;
constexpr int kNiceness = 10; // the target's threads come first
// Others get the lock between slices, and the program time where it is too fast for this thread.
constexpr timespec kPause{0, 50'000};
constexpr timespec kDelay{0, 1'000'000};

enum class Thread : uint8_t { kNone, kRuns, kFailed };
std::atomic<Thread> g_thread{Thread::kNone};
std::atomic<uint32_t> g_requests{0}; ///< since the thread last began to drain
sem_t g_wake;

void *drain_for_ever(void *) noexcept {
  // On Linux the niceness of process 0 is that of the calling thread.
  setpriority(PRIO_PROCESS, 0, kNiceness);
  for (;;) {
    while (sem_wait(&g_wake) != 0 && errno == EINTR) {
    }
    g_requests.store(0, std::memory_order_relaxed);
    try {
      while (!Aggregator::Held().drain_slice())
        nanosleep(&kPause, nullptr);
    } catch (...) { // the records stay in their logs for the next drain
    }
  }
}

// The locks are guarded across a fork by their owners; the thread itself stays with the parent.
void forget_in_child() noexcept {
  g_thread.store(Thread::kNone);
  g_requests.store(0);
}

bool start_thread() noexcept {
  static const int handlers = pthread_atfork(nullptr, nullptr, forget_in_child);
  pthread_attr_t attributes;
  if (handlers != 0 || sem_init(&g_wake, 0, 0) != 0 || pthread_attr_init(&attributes) != 0)
    return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before; // signals are for the target's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  bool started = pthread_create(&thread, &attributes, drain_for_ever, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

} // namespace

void request_background_drain() noexcept {
  Thread state = Thread::kNone;
  uint32_t earlier = g_requests.fetch_add(1, std::memory_order_relaxed);
  if (earlier + 1 < kFewestRequests)
    return;
  bool is_due = earlier + 1 == kFewestRequests;
  if (g_thread.load(std::memory_order_acquire) == Thread::kNone) {
    // Taken for failed until it runs: others drain meanwhile.
    if (g_thread.compare_exchange_strong(state, Thread::kFailed) && start_thread())
      g_thread.store(Thread::kRuns, std::memory_order_release);
  }
  bool runs = g_thread.load(std::memory_order_acquire) == Thread::kRuns;
  if (runs && is_due)
    sem_post(&g_wake);
  else if (!runs)
    Aggregator::try_drain();
  else if (earlier >= kMostRequests)
    nanosleep(&kDelay, nullptr);
}

} // namespace proton
