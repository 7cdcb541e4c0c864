// Turns the times of activity records into CLOCK_MONOTONIC.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "driver/cupti_library.h"

namespace proton {

/// CUPTI asks us for the host's time where the library can; then its times are ours already. Else
/// pairs of both clocks are noted now and then, and times between two of them are interpolated.
class Timebase {
public:
  /// Begins with one of the two ways. Before activities are enabled.
  void start(const CuptiLibrary &library, bool vendor_clock);
  /// Gives the library its usual clock back, for whoever uses it next.
  void stop(const CuptiLibrary &library) noexcept;
  bool converts() const { return converts_; }

  /// How much the library's clock gained on CLOCK_MONOTONIC since `start`, until the newest pair or
  /// `stop`. [any thread]
  int64_t drift_ns() const noexcept { return drift_ns_.load(std::memory_order_relaxed); }

  /// Notes a pair if the last one is old. [completing thread, one at a time]
  void observe(const CuptiLibrary &library) noexcept;
  int64_t monotonic(uint64_t vendor_ns) const noexcept {
    auto time_ns = static_cast<int64_t>(vendor_ns);
    return converts_ ? time_ns - offset_at(time_ns) : time_ns;
  }

private:
  struct Pair {
    int64_t vendor_ns;
    int64_t offset_ns; ///< vendor's time less ours
  };
  static std::optional<Pair> read_both(const CuptiLibrary &library) noexcept;
  int64_t offset_at(int64_t vendor_ns) const noexcept;

  bool converts_ = true;
  int64_t newest_ns_ = 0; ///< CLOCK_MONOTONIC of the newest pair
  std::deque<Pair> pairs_;
  std::optional<Pair> first_;
  std::atomic<int64_t> drift_ns_{0};
};

} // namespace proton
