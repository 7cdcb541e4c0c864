// The thread on which timelines are encoded, and phases that are over are written.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace proton {

/// Has the thread do things.
class WriterClient {
public:
  virtual ~WriterClient() = default;
  /// Called every tenth of a second or so. [the writer thread]
  virtual void tick(int64_t now_ns) noexcept = 0;
};

/// One per process. It starts with its first client and ends with its last; a forked child has
/// none. Jobs are done one after the other.
class WriterThread {
public:
  static constexpr size_t kMaxQueued_bytes = size_t{64} << 20;
  static constexpr int64_t kPatience_ns = 1'000'000'000;

  static WriterThread &instance();

  /// Throws Error(kUnavailable) where no thread can be started. [not on the thread itself]
  void add(std::shared_ptr<WriterClient> client);
  /// Jobs that wait are done before the last client is gone. [not on the thread itself]
  void remove(const WriterClient *client);

  /// Has the thread do something. Exceptions of it are swallowed. [any thread]
  ///   bytes: what waits with it.
  /// Returns the job's number; 0, and nothing is done, without room or a thread.
  uint64_t push(std::function<void()> job, size_t bytes);
  /// The same for what cannot be left out.
  uint64_t push_always(std::function<void()> job, size_t bytes = 0);
  /// Waits until the job is done, which job 0 always is. False: it is not until the deadline
  /// (CLOCK_MONOTONIC).
  bool wait_for(uint64_t job, int64_t deadline_ns);
  /// Where more than three quarters of the room are taken, waits until half of it is free, a second
  /// at most. Returns for how long, 0 where it did not wait.
  int64_t wait_for_room();
  /// Has the clients' `tick` called soon.
  void wake();
  size_t queued_bytes();

  /// In a forked child: there is no thread, and nothing waits. [no other thread]
  void reset_after_fork() noexcept;

private:
  struct Job {
    std::function<void()> work;
    size_t bytes = 0;
  };
  /// Tells a thread to end; each has its own.
  using EndFlag = std::shared_ptr<bool>;
  struct Start {
    WriterThread *owner;
    EndFlag is_ending;
  };

  WriterThread();
  static void *run(void *start) noexcept;
  void serve(const bool &is_ending);
  void tick_clients(std::unique_lock<std::mutex> &lock);
  void start();
  uint64_t push_locked(std::function<void()> job, size_t bytes);

  std::mutex life_; ///< held while the thread starts or ends; taken before `mutex_`
  std::mutex mutex_;
  std::condition_variable has_work_;
  std::condition_variable is_done_; ///< of a job
  std::deque<Job> jobs_;
  size_t queued_bytes_ = 0; ///< with those of the job that is being done
  uint64_t pushed_ = 0;
  uint64_t done_ = 0;
  bool is_woken_ = false;
  std::vector<std::shared_ptr<WriterClient>> clients_;
  pthread_t thread_{};
  EndFlag is_ending_; ///< null: there is no thread
};

// What native threads say to the user.

/// Writes one line to the process's own stderr, whatever the target made of Python's stream.
inline void say(const std::string &text) noexcept {
  try {
    std::string line = "proton: " + text + '\n';
    ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(written);
  } catch (...) { // no memory for the line
  }
}

} // namespace proton
