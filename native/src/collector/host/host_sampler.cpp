#include "collector/host/host_sampler.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <vector>

#include "context/python/python_lock.h"
#include "context/thread/current.h"
#include "context/thread/stack_reader.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr int64_t kLargestShare = 100; ///< reading takes at most one part in so many, unless it
constexpr int64_t kMostPeriods = 10;   ///< would wait for so many periods
constexpr std::chrono::seconds kFlushPatience{1};

/// The sampling thread, and what others ask of it.
struct Sampling {
  Sampling(const HostSampler *its_owner, RecordSink &its_sink, int64_t its_period_ns)
      : owner(its_owner), sink(its_sink), period_ns(its_period_ns) {}
  const HostSampler *owner;
  RecordSink &sink;
  int64_t period_ns;
  pthread_t thread{};
  std::mutex mutex;
  std::condition_variable changed;
  bool has_begun = false;
  bool is_ending = false;
  uint64_t asked = 0; ///< samples that others wait for
  uint64_t taken = 0;
};

// Null in a forked child, which has no such thread; the parent's lock may be held there for ever.
Sampling *g_sampling = nullptr;

void forget_in_child() noexcept { g_sampling = nullptr; }

/// Random numbers that need not be good.
uint32_t next_random(uint32_t &state) noexcept {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

/// False: there will be no more.
bool take_sample(Sampling &sampling, StackReader &reader, bool asks_main,
                 std::vector<HostSample> &samples) {
  SessionState now = session_state();
  if (!now.active) {
    reader.skip(monotonic_ns());
    return true;
  }
  samples.clear();
  bool goes_on = true;
  try {
    goes_on = reader.read(now, asks_main, samples);
  } catch (...) { // no memory
    sampling.sink.dropped({"sample of the host not taken", 1});
  }
  sampling.sink.complete(samples);
  return goes_on;
}

void *run(void *argument) noexcept {
  auto &sampling = *static_cast<Sampling *>(argument);
  StackReader &reader = StackReader::instance();
  std::vector<HostSample> samples;
  uint32_t random = 2463534242u;
  bool reads = reader.attach(monotonic_ns());
  std::unique_lock lock(sampling.mutex);
  sampling.has_begun = true;
  sampling.changed.notify_all();
  while (!sampling.is_ending) {
    // From half of the period to one and a half.
    int64_t wait_ns =
        sampling.period_ns / 2 + sampling.period_ns * (next_random(random) % 1024) / 1024;
    wait_ns = std::max(
        wait_ns, std::min(reader.took_ns() * kLargestShare, sampling.period_ns * kMostPeriods));
    sampling.changed.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] {
      return sampling.is_ending || sampling.taken != sampling.asked;
    });
    if (sampling.is_ending)
      break;
    uint64_t asked = sampling.asked;
    bool asks_main = asked == sampling.taken; // else it may be the one that waits
    lock.unlock();
    reads = reads && take_sample(sampling, reader, asks_main, samples);
    lock.lock();
    if (sampling.taken != asked) {
      sampling.taken = asked;
      sampling.changed.notify_all();
    }
  }
  lock.unlock();
  reader.detach();
  return nullptr;
}

} // namespace

HostSampler::HostSampler(RecordSink &sink, int64_t period_ns) : sink_(sink), period_ns_(period_ns) {
  StackReader::instance().follow_this_thread();
}

void HostSampler::start() {
  if (!StackReader::works())
    throw Error(ErrorCode::kUnavailable,
                "frames of other threads cannot be read in a build of Python without a GIL");
  if (g_sampling)
    return;
  static const int handlers = pthread_atfork(nullptr, nullptr, forget_in_child);
  auto *sampling = new Sampling(this, sink_, period_ns_);
  sigset_t all, before; // signals are for the target's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = handlers != 0 ? handlers : pthread_create(&sampling->thread, nullptr, run, sampling);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code != 0) {
    delete sampling;
    throw Error(ErrorCode::kUnavailable, "no thread for samples of the host");
  }
  pthread_setname_np(sampling->thread, "proton-host");
  g_sampling = sampling;
  // Else it would wait for a first long call into C code without seeing it.
  WithoutPythonLock unlocked;
  std::unique_lock lock(sampling->mutex);
  sampling->changed.wait(lock, [&] { return sampling->has_begun; });
}

void HostSampler::flush() {
  Sampling *sampling = g_sampling;
  if (!sampling)
    return;
  WithoutPythonLock unlocked;
  std::unique_lock lock(sampling->mutex);
  uint64_t number = ++sampling->asked;
  sampling->changed.notify_all();
  sampling->changed.wait_for(lock, kFlushPatience, [&] { return sampling->taken >= number; });
}

void HostSampler::stop() {
  Sampling *sampling = g_sampling;
  if (!sampling || sampling->owner != this)
    return;
  g_sampling = nullptr;
  WithoutPythonLock unlocked; // the thread may need it to end
  {
    std::lock_guard lock(sampling->mutex);
    sampling->is_ending = true;
  }
  sampling->changed.notify_all();
  pthread_join(sampling->thread, nullptr);
  delete sampling;
}

} // namespace proton
