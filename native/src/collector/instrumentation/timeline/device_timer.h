// A device's nanosecond timer against CLOCK_MONOTONIC: it counts something near unix time, up to
// some tenths of a millisecond beside the host's clock, at a pace of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/instrumentation/buffers/device_context.h"
#include "record/timeline_record.h"

namespace proton {

/// What is known of a device's timer.
struct DeviceTimerFacts {
  int device = 0;
  TimerOffset newest;    ///< of the newest reading
  uint64_t readings = 0; ///< that were kept
  double drift_ppm = 0;  ///< from the first to the newest; 0: less than readings can tell
  std::string failure;   ///< why there is none, or no newer one
};

/// A kernel that notes the timer runs between two readings of the host's clock. Used by one thread
/// at a time; the context has to be current.
class DeviceTimer {
public:
  static constexpr int64_t kBetweenNs = 1'000'000'000;

  explicit DeviceTimer(DeviceContext &context, int64_t between_ns = kBetweenNs)
      : context_(context), between_ns_(between_ns) {}

  /// Reads both, if the last time is long ago, and keeps the reading unless an older one is worth
  /// more: a busy device takes long to run the kernel.
  void observe() noexcept;
  /// At a time of the timer: on the line from the first to the newest reading.
  TimerOffset at(uint64_t timer_ns) const noexcept;
  DeviceTimerFacts facts() const;
  /// Gives its memory back. [nothing of ours runs]
  void free() noexcept;

private:
  struct Reading {
    uint64_t timer_ns = 0;
    TimerOffset offset;
  };

  void read();
  /// Bounds by one run of the kernel; empty where it noted nothing.
  std::optional<Reading> read_once();
  bool is_worth_keeping(const Reading &reading) const noexcept;
  double drift() const noexcept;

  DeviceContext &context_;
  const int64_t between_ns_;
  device::ClockAnchor *anchors_ = nullptr; ///< memory of the host
  int64_t tried_ns_ = 0;                   ///< when it was last read; 0: never
  uint64_t readings_ = 0;
  Reading first_;
  Reading newest_;
  std::string failure_;
};

} // namespace proton
