// A cheap clock for host work that is timed millions of times: the processor's own counter, where
// the kernel trusts it.
#pragma once

#include <atomic>
#include <cstdint>

#include "support/clock.h"

namespace proton {

/// Nanoseconds since a point that `calibrate` fixes. Only differences have a meaning, also between
/// threads.
class TickClock {
public:
  static int64_t now_ns() noexcept {
#if defined(__x86_64__)
    if (uint64_t scale = scale_.load(std::memory_order_relaxed))
      return static_cast<int64_t>(static_cast<uint64_t>(
          (static_cast<unsigned __int128>(__builtin_ia32_rdtsc()) * scale) >> kShift));
#endif
    return monotonic_ns();
  }

  /// Measures the counter's frequency once, in some milliseconds. Until then, and where the kernel
  /// does not use the counter for its own time, CLOCK_MONOTONIC is read. Returns whether the
  /// counter is used.
  static bool calibrate();
  /// Whether the counter is read now.
  static bool reads_counter() noexcept { return scale_.load(std::memory_order_relaxed) != 0; }

private:
  static constexpr int kShift = 32;
  static std::atomic<uint64_t> scale_; ///< nanoseconds per tick times 2^kShift; 0: not used
};

} // namespace proton
