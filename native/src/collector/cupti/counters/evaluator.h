// The process that evaluates samples, as the recorded program sees it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "collector/cupti/cupti_options.h"

namespace proton {

/// Memory that the process sees, too.
struct SharedBytes {
  uint8_t *data = nullptr;
  size_t bytes = 0;
  size_t offset = 0; ///< in the file behind it
};

/// While libcupti evaluates, launches of its process stand still, so another process does it. It
/// starts with the first samples, and once more if it dies. At most one object in a process.
class Evaluator {
public:
  /// No answer is waited for after `end_by_ns` of CLOCK_MONOTONIC, which may change at any time.
  Evaluator(const CounterOptions &options, std::string library,
            const std::atomic<int64_t> &end_by_ns);
  ~Evaluator(); ///< ends the process
  Evaluator(const Evaluator &) = delete;
  Evaluator &operator=(const Evaluator &) = delete;

  /// Zeros, as long as this object lives. Throws Error(kUnavailable).
  SharedBytes share(size_t bytes);
  /// Returns a row of metrics for each of these samples of an image; NaNs for a sample that cannot
  /// be evaluated. Throws Error(kUnavailable) that says why there is no answer.
  std::vector<double> evaluate(const SharedBytes &image, const std::string &chip,
                               const std::vector<std::string> &metrics,
                               const std::vector<uint64_t> &samples);
  /// Ends the process for good.
  void give_up() noexcept;
  /// False: it died too often, or it was given up.
  bool is_usable() const { return process_ > 0 || starts_ < kMostStarts; }
  /// Processor time of all its processes, as far as they said.
  int64_t used_ns() const { return earlier_ns_ + used_ns_; }

  /// Closes in a forked child what belongs to the parent.
  static void forget_after_fork() noexcept;

private:
  static constexpr int kMostStarts = 2;

  void start();
  /// Returns how it ended, as waitpid says it; -1 where the target has waited for it.
  int end() noexcept;
  void close_all() noexcept;
  /// Ends the process. Throws Error(kUnavailable) that says why.
  [[noreturn]] void fail(bool is_late);
  /// Sends (`is_out`) or receives all of it, or fails.
  void transfer(void *data, size_t bytes, bool is_out);

  const std::vector<std::string> command_;
  const std::vector<std::string> environment_;
  const int64_t most_wait_ns_;
  const std::string library_;
  const std::atomic<int64_t> &end_by_ns_;

  int memory_ = -1; ///< these two change under the lock that is taken around fork()
  int socket_ = -1;
  std::vector<SharedBytes> shared_;
  size_t shared_bytes_ = 0;
  pid_t process_ = 0; ///< 0: none
  int starts_ = 0;
  int64_t deadline_ns_ = 0; ///< of the present request
  int64_t used_ns_ = 0;     ///< of the present process
  int64_t earlier_ns_ = 0;
};

} // namespace proton
