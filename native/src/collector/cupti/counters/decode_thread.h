// A thread of lowest priority that works for another.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace proton {

/// Does one thing at a time, while its owner waits: what takes long does not compete with the
/// target, and the owner, which has to be in time, keeps its priority.
class DecodeThread {
public:
  /// Throws std::system_error where the system gives no thread.
  DecodeThread() : thread_([this] { work(); }) {}
  ~DecodeThread();
  DecodeThread(const DecodeThread &) = delete;
  DecodeThread &operator=(const DecodeThread &) = delete;

  /// Returns once it is done; throws what it threw. [owner]
  void run(std::function<void()> task);
  int64_t used_ns() const { return used_ns_; } ///< processor time of all of it [owner]

private:
  void work() noexcept;

  std::mutex mutex_; ///< of all below
  std::condition_variable changed_;
  std::function<void()> task_; ///< empty: nothing to do
  std::exception_ptr error_;
  bool is_ending_ = false;
  int64_t used_ns_ = 0;
  std::thread thread_; // begins last
};

/// Processor time of the calling thread.
int64_t thread_time_ns() noexcept;

} // namespace proton
