// A thread that does something now and then.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace proton {

/// Calls a function again and again, at a low priority and without signals of the target.
class PeriodicThread {
public:
  /// False if the system gives no thread.
  bool start(uint32_t period_ms, std::function<void()> ask) noexcept;
  /// Returns once the function has ended. Does nothing if the thread was not started.
  void stop() noexcept;

private:
  void run(uint32_t period_ms, const std::function<void()> &ask) noexcept;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_ending_ = false;
  std::optional<std::thread> thread_;
};

} // namespace proton
