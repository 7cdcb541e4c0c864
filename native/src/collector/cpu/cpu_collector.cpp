#include "collector/cpu/cpu_collector.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <vector>

#include "collector/cpu/op_stack.h"
#include "collector/cpu/torch_observer.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

int open_event(const perf_event_attr &attributes) {
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}
constexpr PerfCalls kSystem{open_event, ::read, ::close};
std::atomic<const PerfCalls *> g_calls{&kSystem};
const PerfCalls &calls() noexcept { return *g_calls.load(std::memory_order_acquire); }

/// Of one thread, which opens and reads it. Any thread may close it.
struct Counter {
  std::mutex mutex;
  int descriptor = -1;
  uint64_t serial = 0; ///< of the start for which it was opened, or could not be
  uint64_t last = 0;

  void close() noexcept {
    if (descriptor >= 0)
      calls().close(descriptor);
    descriptor = -1;
  }
};

struct Counters {
  Counters() { guard_across_fork(mutex, LockRank::kPerfCounters); }
  std::mutex mutex; ///< taken before that of a counter
  std::vector<Counter *> all;
  uint64_t starts = 0;
  std::atomic<uint64_t> serial{0}; ///< of the present start; 0: nothing counts
  std::atomic<uint32_t> type{0};
  std::atomic<uint64_t> config{0};
  std::atomic<uint64_t> failures{0};
};
Counters &counters() {
  static auto *all = new Counters; // the target's threads may need it to the end
  return *all;
}

/// Returns a descriptor, or -1 and sets errno.
int open_for_this_thread(uint32_t type, uint64_t config) noexcept {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = type;
  attributes.config = config;
  attributes.pinned = 1;         // counts all the time, or can not be read
  attributes.exclude_kernel = 1; // else perf_event_paranoid would have to be 1 or less
  attributes.exclude_hv = 1;
  return calls().open(attributes);
}

bool read_count(int descriptor, uint64_t &count) noexcept {
  ssize_t got = 0;
  do
    got = calls().read(descriptor, &count, sizeof(count));
  while (got < 0 && errno == EINTR);
  return got == sizeof(count);
}

[[gnu::tls_model("initial-exec")]] thread_local Counter *t_counter = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local bool t_has_ended = false;

/// In a forked child only this thread is left, and the counters count threads of the parent.
void start_child() noexcept {
  Counters &all = counters();
  for (Counter *counter : all.all) {
    counter->close();
    counter->serial = 0;
  }
  all.failures.store(0, std::memory_order_relaxed);
  all.all.clear(); // the locks of other threads' counters may be held for ever
  if (t_counter)
    all.all.push_back(t_counter); // it had room for more
}

struct CounterOwner {
  ~CounterOwner() {
    t_counter = nullptr;
    t_has_ended = true;
    if (!counter)
      return;
    std::lock_guard all(counters().mutex);
    std::lock_guard own(counter->mutex);
    std::erase(counters().all, counter.get());
    counter->close();
  }
  std::unique_ptr<Counter> counter;
};
thread_local CounterOwner t_counter_owner;

/// Null without memory, and while the thread ends.
Counter *make_counter() noexcept {
  if (t_has_ended)
    return nullptr;
  try {
    auto counter = std::make_unique<Counter>();
    std::lock_guard lock(counters().mutex);
    counters().all.push_back(counter.get());
    t_counter_owner.counter = std::move(counter);
    t_counter = t_counter_owner.counter.get();
  } catch (...) { // nothing is counted on this thread
  }
  return t_counter;
}

bool take(int64_t &count) noexcept {
  Counter *counter = t_counter ? t_counter : make_counter();
  if (!counter)
    return false;
  Counters &all = counters();
  std::lock_guard lock(counter->mutex);
  uint64_t serial = all.serial.load(std::memory_order_acquire);
  if (serial == 0)
    return false; // stopped: what is open will be closed, and nothing is opened any more
  if (counter->serial != serial) {
    counter->serial = serial;
    counter->close();
    counter->last = 0;
    counter->descriptor = open_for_this_thread(all.type, all.config);
    if (counter->descriptor < 0)
      all.failures.fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t now = 0;
  if (counter->descriptor < 0)
    return false;
  if (!read_count(counter->descriptor, now)) {
    all.failures.fetch_add(1, std::memory_order_relaxed);
    counter->close();
    return false;
  }
  count = static_cast<int64_t>(now - counter->last);
  counter->last = now;
  return true;
}

} // namespace

void set_perf_calls(const PerfCalls *replaced) noexcept {
  g_calls.store(replaced ? replaced : &kSystem, std::memory_order_release);
}

PerfCounter &PerfCounter::instance() {
  static auto *counter = new PerfCounter;
  return *counter;
}

int PerfCounter::probe(const PerfEvent &event) {
  int descriptor = open_for_this_thread(event.type, event.config);
  if (descriptor < 0)
    return errno;
  calls().close(descriptor);
  return 0;
}

void PerfCounter::start(const PerfEvent &event) {
  Counters &all = counters();
  static const int handlers = pthread_atfork(nullptr, nullptr, start_child);
  if (handlers != 0)
    throw Error(ErrorCode::kUnavailable, "no memory to follow forks of the program");
  stop(); // counters of another event
  {
    std::lock_guard lock(all.mutex);
    all.type = event.type;
    all.config = event.config;
    all.failures.store(0, std::memory_order_relaxed);
    all.serial.store(++all.starts, std::memory_order_release);
  }
  set_count_source(take, event.metric);
}

void PerfCounter::stop() noexcept {
  Counters &all = counters();
  set_count_source(nullptr, {});
  all.serial.store(0, std::memory_order_release);
  std::lock_guard lock(all.mutex);
  for (Counter *counter : all.all) {
    std::lock_guard owner(counter->mutex);
    counter->close();
  }
}

uint64_t PerfCounter::take_failures() noexcept {
  return counters().failures.exchange(0, std::memory_order_relaxed);
}

void CpuCollector::start() {
  TickClock::calibrate();
  set_op_depth(max_depth_);
  if (event_)
    PerfCounter::instance().start(*event_);
  set_ops_enabled(true);
}

void CpuCollector::flush() {
  if (!session_state().active)
    return; // no session would see the count
  if (uint64_t strays = take_stray_ops(); strays != 0)
    sink_.dropped({"torch operator ended out of order or on another thread", strays});
  if (uint64_t failures = PerfCounter::instance().take_failures(); failures != 0)
    sink_.dropped({"a thread whose instructions could not be counted", failures});
}

void CpuCollector::stop() {
  set_ops_enabled(false);
  if (event_)
    PerfCounter::instance().stop();
  TorchObserver::instance().detach(TorchObserver::kTimes);
}

} // namespace proton
