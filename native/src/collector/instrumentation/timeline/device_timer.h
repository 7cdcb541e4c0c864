// Compares a device's nanosecond timer with CLOCK_MONOTONIC. The timer counts roughly unix time: it
// is up to some tenths of a millisecond off, and has its own pace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/instrumentation/buffers/device_context.h"
#include "record/timeline_record.h"

namespace proton {

/// Facts about a device's timer.
struct DeviceTimerFacts {
  int device = 0;
  TimerOffset newest;    ///< of the newest reading
  uint64_t readings = 0; ///< that were kept
  double drift_ppm = 0;  ///< from the first to the newest; 0: less than readings can tell
  std::string failure;   ///< why there is no reading, or no newer one
};

/// A kernel that notes the timer runs between two readings of the host's clock. For one thread at a
/// time; the context must be current.
class DeviceTimer {
public:
  static constexpr int64_t kBetweenNs = 1'000'000'000;

  explicit DeviceTimer(DeviceContext &context, int64_t between_ns = kBetweenNs)
      : context_(context), between_ns_(between_ns) {}

  /// Reads both clocks, if the last time is long ago. The reading is kept unless an older one is
  /// better: a busy device takes long to run the kernel.
  void observe() noexcept;
  /// The offset at a time of the timer, on the line from the first to the newest reading.
  TimerOffset at(uint64_t timer_ns) const noexcept;
  DeviceTimerFacts facts() const;
  /// Frees its memory. [nothing of ours runs]
  void free() noexcept;

private:
  struct Reading {
    uint64_t timer_ns = 0;
    TimerOffset offset;
  };

  void read();
  /// Bounds from one run of the kernel; empty if it noted nothing.
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
