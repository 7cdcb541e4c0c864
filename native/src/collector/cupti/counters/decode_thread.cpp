#include "collector/cupti/counters/decode_thread.h"

#include <sys/resource.h>

#include <ctime>
#include <utility>

#include "driver/own_work.h"

namespace proton {
namespace {

constexpr int kLowestPriority = 19;

} // namespace

int64_t thread_time_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

DecodeThread::~DecodeThread() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DecodeThread::run(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  error_ = nullptr;
  task_ = std::move(task);
  changed_.notify_all();
  changed_.wait(lock, [&] { return !task_; });
  if (error_)
    std::rethrow_exception(std::exchange(error_, nullptr));
}

void DecodeThread::work() noexcept {
  setpriority(PRIO_PROCESS, 0, kLowestPriority); // on Linux that is the calling thread
  OwnWork own;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return task_ || is_ending_; });
    if (!task_)
      return;
    try {
      task_(); // the owner waits, so the lock is in nobody's way
    } catch (...) {
      error_ = std::current_exception();
    }
    used_ns_ = thread_time_ns();
    task_ = nullptr;
    changed_.notify_all();
  }
}

} // namespace proton
