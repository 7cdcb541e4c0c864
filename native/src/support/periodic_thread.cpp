#include "support/periodic_thread.h"

#include <pthread.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

namespace proton {
namespace {

constexpr int kNiceness = 10; // the target's threads come first

} // namespace

bool PeriodicThread::start(uint32_t period_ms, std::function<void()> ask) noexcept {
  stop();
  is_ending_ = false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_.emplace([this, period_ms, ask = std::move(ask)] { run(period_ms, ask); });
  } catch (const std::exception &) { // std::system_error, or no memory
    thread_.reset();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.has_value();
}

void PeriodicThread::run(uint32_t period_ms, const std::function<void()> &ask) noexcept {
  // On Linux the niceness of process 0 is that of the calling thread.
  setpriority(PRIO_PROCESS, 0, kNiceness);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::milliseconds(period_ms), [&] { return is_ending_; })) {
    lock.unlock();
    ask();
    lock.lock();
  }
}

void PeriodicThread::stop() noexcept {
  if (!thread_)
    return;
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_all();
  thread_->join();
  thread_.reset();
}

} // namespace proton
