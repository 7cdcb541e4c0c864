#include "collector/gpu/launches/launch_thread.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "support/clock.h"

namespace proton {
namespace {

/// Where a key stands behind which there is a whole number.
size_t numbered(std::string_view text, std::string_view key) noexcept {
  size_t place = text.find(key);
  if (place == text.npos || place == 0)
    return text.npos;
  std::string_view rest = text.substr(place + key.size());
  rest.remove_prefix(rest.starts_with('-') ? 1 : 0);
  size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  bool is_whole = digits != 0 && (digits == rest.size() || rest.substr(digits).starts_with(", "));
  return is_whole ? place : text.npos;
}

} // namespace

std::string_view name_of_range(std::string_view text) noexcept {
  size_t id = numbered(text, ", op_id = "); // of torch 1.10 and later
  std::string_view name = text.substr(0, id);
  size_t sequence = numbered(name, ", seq = ");
  if (sequence == name.npos)
    return name;
  std::string_view before = name.substr(0, sequence);
  bool is_operator = before.find("::") != name.npos || before.find("Backward") != name.npos;
  return id != text.npos || is_operator ? before : name;
}

void MarkerRanges::close_innermost() noexcept {
  while (!entries_.empty() && entries_.back().is_over && exit_scope_range(entries_.back().range))
    entries_.pop_back();
}

void MarkerRanges::push(const void *domain, std::string_view name) {
  close_innermost();
  if (entries_.size() == kMax || beyond_ != 0) {
    ++beyond_;
    return;
  }
  entries_.push_back({domain, {}, false});
  entries_.back().range = enter_scope_range(name_of_range(name));
}

void MarkerRanges::pop(const void *domain) noexcept {
  if (beyond_ != 0) {
    --beyond_;
    return;
  }
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->domain != domain || entry->is_over)
      continue;
    entry->is_over = true;
    break;
  }
  close_innermost(); // one that lies below a range of another domain waits for that
}

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

namespace {

struct ThreadList {
  std::mutex mutex;
  std::vector<std::unique_ptr<LaunchThread>> all;
  std::vector<LaunchThread *> unused;
};

ThreadList &threads() {
  static ThreadList *list = new ThreadList; // outlives threads of the target
  return *list;
}

[[gnu::tls_model("initial-exec")]] thread_local LaunchThread *t_thread = nullptr;

void end_thread(void *ended) noexcept {
  auto *thread = static_cast<LaunchThread *>(ended);
  t_thread = nullptr;
  if (thread->is_inside())
    thread->leave(); // the thread ended inside a call
  thread->markers.clear();
  ThreadList &list = threads();
  std::lock_guard lock(list.mutex);
  list.unused.push_back(thread); // `adopt` made room
}

LaunchThread *adopt() noexcept {
  try {
    ThreadList &list = threads();
    std::lock_guard lock(list.mutex);
    if (list.unused.empty()) {
      list.all.push_back(std::make_unique<LaunchThread>());
      list.unused.reserve(list.all.capacity());
      list.unused.push_back(list.all.back().get());
    }
    static pthread_key_t key{};
    static const bool has_key = pthread_key_create(&key, end_thread) == 0;
    LaunchThread *thread = list.unused.back();
    list.unused.pop_back();
    if (has_key) // else it is not used again
      pthread_setspecific(key, thread);
    t_thread = thread;
  } catch (const std::bad_alloc &) { // the next call tries again
  }
  return t_thread;
}

void pause_briefly() noexcept {
  timespec pause{0, 20'000};
  nanosleep(&pause, nullptr);
}

/// Makes every running thread pass a memory barrier.
void fence_all_threads() noexcept {
  static const bool is_registered =
      syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  if (is_registered && syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    return;
  pause_briefly(); // stores become visible by themselves long before that is over
}

} // namespace

LaunchThread *this_launch_thread() noexcept { return t_thread ? t_thread : adopt(); }

void forget_open_calls() noexcept {
  ThreadList &list = threads();
  std::lock_guard lock(list.mutex);
  for (const auto &thread : list.all)
    thread->forgotten = thread->serial.load(); // an even one stands for no call
}

bool wait_for_open_calls(uint32_t limit_ms) {
  fence_all_threads();
  std::vector<std::pair<const LaunchThread *, uint32_t>> open;
  {
    ThreadList &list = threads();
    std::lock_guard lock(list.mutex);
    for (const auto &thread : list.all) {
      uint32_t serial = thread->serial.load(std::memory_order_acquire);
      bool is_open = serial % 2 != 0 && serial != thread->forgotten.load();
      if (is_open && thread.get() != t_thread)
        open.emplace_back(thread.get(), serial);
    }
  }
  const int64_t end_ns = monotonic_ns() + int64_t{limit_ms} * 1'000'000;
  for (auto [thread, serial] : open)
    while (thread->serial.load(std::memory_order_acquire) == serial) {
      if (monotonic_ns() >= end_ns)
        return false;
      pause_briefly();
    }
  return true;
}

} // namespace proton
