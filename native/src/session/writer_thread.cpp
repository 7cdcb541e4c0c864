#include "session/writer_thread.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <new>

#include "support/clock.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

using QueueLock = std::unique_lock<std::mutex>;

constexpr int64_t kTick_ns = 100'000'000;

std::chrono::steady_clock::time_point at(int64_t monotonic) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(monotonic));
}

} // namespace

WriterThread::WriterThread() { guard_across_fork(mutex_, LockRank::kWriter); }

WriterThread &WriterThread::instance() {
  static WriterThread *writer = new WriterThread; // the target's threads may need it to the end
  return *writer;
}

void WriterThread::add(std::shared_ptr<WriterClient> client) {
  std::lock_guard life(life_);
  QueueLock lock(mutex_);
  if (!is_ending_)
    start();
  clients_.push_back(std::move(client));
}

void WriterThread::start() {
  auto is_ending = std::make_shared<bool>(false);
  auto argument = std::make_unique<Start>(Start{this, is_ending});
  sigset_t all, before; // signals are for the target's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&thread_, nullptr, run, argument.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code != 0)
    throw Error(ErrorCode::kUnavailable,
                "cannot start the thread that writes timelines and phases: the system gives no "
                "more threads; end some, or record without data='trace' and periodic_flushing");
  static_cast<void>(argument.release()); // the thread's
  is_ending_ = std::move(is_ending);
}

void WriterThread::remove(const WriterClient *client) {
  std::lock_guard life(life_); // the next thread starts when this one is gone
  pthread_t last{};
  {
    QueueLock lock(mutex_);
    auto is_it = [client](const auto &each) { return each.get() == client; };
    if (std::erase_if(clients_, is_it) == 0 || !clients_.empty() || !is_ending_)
      return;
    *is_ending_ = true;
    is_ending_.reset();
    last = thread_;
    has_work_.notify_all();
  }
  pthread_join(last, nullptr);
}

uint64_t WriterThread::push_locked(std::function<void()> job, size_t bytes) {
  jobs_.push_back({std::move(job), bytes});
  queued_bytes_ += bytes;
  has_work_.notify_one();
  return ++pushed_;
}

uint64_t WriterThread::push(std::function<void()> job, size_t bytes) {
  QueueLock lock(mutex_);
  bool fits = queued_bytes_ == 0 || queued_bytes_ + bytes <= kMaxQueued_bytes;
  return is_ending_ && fits ? push_locked(std::move(job), bytes) : 0;
}

uint64_t WriterThread::push_always(std::function<void()> job, size_t bytes) {
  QueueLock lock(mutex_);
  return is_ending_ ? push_locked(std::move(job), bytes) : 0;
}

bool WriterThread::wait_for(uint64_t job, int64_t deadline_ns) {
  QueueLock lock(mutex_);
  return is_done_.wait_until(lock, at(deadline_ns), [&] { return done_ >= job || !is_ending_; }) &&
         done_ >= job;
}

int64_t WriterThread::wait_for_room() {
  QueueLock lock(mutex_);
  if (queued_bytes_ <= kMaxQueued_bytes / 4 * 3)
    return 0;
  int64_t start_ns = monotonic_ns();
  is_done_.wait_until(lock, at(start_ns + kPatience_ns),
                      [&] { return queued_bytes_ <= kMaxQueued_bytes / 2 || !is_ending_; });
  return std::max<int64_t>(monotonic_ns() - start_ns, 1);
}

void WriterThread::wake() {
  QueueLock lock(mutex_);
  is_woken_ = true;
  has_work_.notify_one();
}

size_t WriterThread::queued_bytes() {
  QueueLock lock(mutex_);
  return queued_bytes_;
}

void *WriterThread::run(void *start) noexcept {
  pthread_setname_np(pthread_self(), "proton-writer");
  std::unique_ptr<Start> argument(static_cast<Start *>(start));
  argument->owner->serve(*argument->is_ending);
  return nullptr;
}

void WriterThread::serve(const bool &is_ending) {
  int64_t due_ns = monotonic_ns() + kTick_ns;
  QueueLock lock(mutex_);
  while (!is_ending || !jobs_.empty()) {
    has_work_.wait_until(lock, at(due_ns),
                         [&] { return !jobs_.empty() || is_woken_ || is_ending; });
    if (!jobs_.empty()) {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      try {
        job.work();
      } catch (...) { // no memory; what the job is for has counted what it could
      }
      job.work = nullptr; // what it holds goes before its room is free
      lock.lock();
      queued_bytes_ -= job.bytes;
      ++done_;
      is_done_.notify_all();
    }
    if (is_woken_ || monotonic_ns() >= due_ns) {
      is_woken_ = false;
      tick_clients(lock);
      due_ns = monotonic_ns() + kTick_ns;
    }
  }
}

void WriterThread::tick_clients(QueueLock &lock) {
  for (size_t i = 0; i < clients_.size(); ++i) {
    std::shared_ptr<WriterClient> client = clients_[i]; // others may come and go meanwhile
    lock.unlock();
    client->tick(monotonic_ns());
    client.reset();
    lock.lock();
  }
}

void WriterThread::reset_after_fork() noexcept {
  // Threads of the parent may have waited, or held the one that no fork takes.
  new (&life_) std::mutex;
  new (&has_work_) std::condition_variable;
  new (&is_done_) std::condition_variable;
  // What waits is the parent's: it is abandoned as it is, because freeing it could end files.
  new (&jobs_) std::deque<Job>;
  new (&clients_) std::vector<std::shared_ptr<WriterClient>>;
  queued_bytes_ = 0;
  pushed_ = done_ = 0;
  is_woken_ = false;
  new (&is_ending_) EndFlag;
}

} // namespace proton
