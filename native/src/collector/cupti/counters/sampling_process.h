// The process that samples counters, as the recorded program sees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "collector/cupti/counters/counter_samples.h"
#include "collector/cupti/cupti_options.h"
#include "support/file_identity.h"

namespace proton {

/// While libcupti switches counters, decodes or evaluates, launches of its process stand still, so
/// another process does all of it. It starts with the first request, and once more if it dies. At
/// most one object in a process.
class SamplingProcess {
public:
  SamplingProcess(const CounterOptions &options, std::string library);
  ~SamplingProcess(); ///< ends the process
  SamplingProcess(const SamplingProcess &) = delete;
  SamplingProcess &operator=(const SamplingProcess &) = delete;

  // On one thread. `uuid` is that of a device. They throw Error(kUnavailable) that says why not.

  /// Switches counters on: the first of the sets that fits. Returns its metrics.
  CounterSamples open(const std::string &uuid, const std::vector<std::vector<std::string>> &sets);
  /// Takes one burst of an open device; times are CLOCK_MONOTONIC.
  CounterSamples sample(const std::string &uuid, const std::vector<std::string> &metrics);
  /// False: it is not started yet, or it died.
  bool is_running() const { return socket_ >= 0; }
  /// False: it died too often.
  bool is_usable() const { return is_running() || starts_ < kMostStarts; }
  /// Processor time of all its processes, as far as they said.
  int64_t used_ns() const { return earlier_ns_ + used_ns_; }

  /// There will be no more requests: ends a burst early, whose samples are waited for until
  /// `end_by_ns` of CLOCK_MONOTONIC, and anything else at once. [any thread]
  void finish(int64_t end_by_ns) noexcept;
  /// Closes in a forked child what belongs to the parent.
  static void forget_after_fork() noexcept;

private:
  static constexpr int kMostStarts = 2;

  CounterSamples ask(const std::string &uuid, const std::vector<std::vector<std::string>> &sets,
                     bool is_opening);
  void set_in_burst(bool is_in_burst) noexcept;
  void start();
  void end() noexcept;
  /// False: the target closed all its descriptors, and may have files under their numbers.
  bool has_socket() const noexcept;
  /// Closes the descriptors but that of the process, which it returns; -1: there is none.
  int let_go() noexcept;
  /// Ends the process. Throws Error(kUnavailable) that says why.
  [[noreturn]] void fail(const std::string &why);
  /// Sends (`is_out`) or receives all of it, or fails.
  void transfer(void *data, size_t bytes, bool is_out);
  template <typename T> void receive(std::vector<T> &values, size_t count);

  const CounterOptions options_;
  const std::string library_;

  int socket_ = -1;          ///< changes under the lock that is taken around fork(); -1: no process
  FileIdentity identity_;    ///< of the socket; same
  int handle_ = -1;          ///< of the process; -1: none; same
  bool is_finished_ = false; ///< same
  bool is_in_burst_ = false; ///< same
  std::atomic<int64_t> end_by_ns_;
  int starts_ = 0;
  int64_t deadline_ns_ = 0; ///< of the present request
  int64_t used_ns_ = 0;     ///< of the present process
  int64_t earlier_ns_ = 0;
};

} // namespace proton
