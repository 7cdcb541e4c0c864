// Turns the times of activity records into CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

#include "collector/gpu/devices/clock_pairs.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

/// If the library can ask for the host's time, its times are ours already. Otherwise pairs of both
/// clocks are noted now and then, and times between two of them are interpolated.
class Timebase {
public:
  /// Begins in one of the two ways. Call before activities are enabled.
  void start(const CuptiLibrary &library, bool vendor_clock);
  /// Restores the library's own clock for its next user.
  void stop(const CuptiLibrary &library) noexcept;
  bool converts() const { return converts_; }

  /// How much the library's clock gained on CLOCK_MONOTONIC since `start`, until the newest pair or
  /// `stop`. [any thread]
  int64_t drift_ns() const noexcept { return pairs_.drift_ns(); }

  /// Notes a pair if the last one is old. [completing thread, one at a time]
  void observe() noexcept {
    if (converts_)
      pairs_.observe();
  }
  int64_t monotonic(uint64_t vendor_ns) const noexcept {
    auto time_ns = static_cast<int64_t>(vendor_ns);
    return converts_ ? pairs_.monotonic(time_ns) : time_ns;
  }

private:
  bool converts_ = true;
  ClockPairs pairs_;
};

} // namespace proton
