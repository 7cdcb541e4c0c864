// The process that samples counters, as the recorded program sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "collector/cupti/counters/pm_device.h"
#include "collector/cupti/cupti_options.h"

namespace proton {

/// While libcupti switches counters, decodes or evaluates, launches of its process stand still, so
/// another process does all of it. Whoever started that one gave us an end of its socket. At most
/// one object in a process.
class SamplingProcess {
public:
  /// Takes over the socket, on whose other end is serve_counter_samples.
  SamplingProcess(const CounterOptions &options, std::string library, int socket);
  ~SamplingProcess(); ///< the other process ends with its socket
  SamplingProcess(const SamplingProcess &) = delete;
  SamplingProcess &operator=(const SamplingProcess &) = delete;

  // On one thread. `uuid` is that of a device. They throw Error(kUnavailable) that says why not.

  /// Switches counters on: the first of the sets that fits. Returns its metrics.
  CounterSamples open(const std::string &uuid, const std::vector<std::vector<std::string>> &sets);
  /// Takes one burst of an open device; times are CLOCK_MONOTONIC.
  CounterSamples sample(const std::string &uuid, const std::vector<std::string> &metrics);
  /// False: it has died.
  bool is_running() const { return is_running_; }
  /// Its processor time, as far as it said.
  int64_t used_ns() const { return used_ns_; }

  /// There will be no more requests: ends a burst early, whose samples are waited for until
  /// `end_by_ns` of CLOCK_MONOTONIC, and anything else at once. [any thread]
  void finish(int64_t end_by_ns) noexcept;
  /// Closes in a forked child what belongs to the parent.
  static void forget_after_fork() noexcept;

private:
  CounterSamples request(const std::string &uuid, const std::vector<std::vector<std::string>> &sets,
                         bool is_opening);
  [[noreturn]] void fail(const char *why);
  /// Sends (`is_out`) or receives all of it, or fails.
  void transfer(void *data, size_t bytes, bool is_out);
  template <typename T> void receive(std::vector<T> &values, size_t count);

  inline static std::atomic<int> open_socket_{-1}; ///< of the one object
  const CounterOptions options_;
  const std::string library_;
  const int socket_;
  bool is_running_ = true;
  std::atomic<bool> is_in_burst_{false};
  std::atomic<int64_t> end_by_ns_;
  int64_t deadline_ns_ = 0; ///< of the present request
  int64_t used_ns_ = 0;
};

} // namespace proton
