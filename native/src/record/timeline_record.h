// When the scopes inside one launch of a kernel began and ended, per program and warp.
#pragma once

#include <cstdint>
#include <span>

#include "record/cycle_record.h"

namespace proton {

/// One pair of records. Clocks count from the first paired record of the program.
struct TimelineScope {
  uint64_t start_cycle = 0;
  uint64_t cycles = 0; ///< less what recording cost
  uint16_t warp = 0;
  uint16_t end_warp = 0; ///< differs for an asynchronous event that another warp ended
  uint8_t scope = 0;
  bool is_async = false;
};

/// A program (CTA) of the launch. Times are of the device's own nanosecond timer.
struct TimelineProgram {
  uint32_t program = 0;
  uint32_t processor = 0;
  uint64_t init_ns = 0;
  uint64_t pre_final_ns = 0;
  uint64_t post_final_ns = 0;
  uint64_t last_cycle = 0; ///< clock of the newest record
  uint32_t first = 0;      ///< of its scopes in the launch
  uint32_t count = 0;
  bool is_lossy = false; ///< older records were replaced, so its first one is not near `init_ns`
};

/// How a device's nanosecond timer stands to CLOCK_MONOTONIC.
struct TimerOffset {
  int64_t offset_ns = 0;       ///< CLOCK_MONOTONIC less the timer
  int64_t uncertainty_ns = -1; ///< it is at most so far off; negative: the timer was not read

  bool is_known() const { return uncertainty_ns >= 0; }
  int64_t monotonic(uint64_t timer_ns) const {
    return static_cast<int64_t>(timer_ns + static_cast<uint64_t>(offset_ns));
  }
};

/// One launch. Pointers are valid only while it is handed over.
struct TimelineRecord {
  Capture at;
  uint64_t correlation_id = 0; ///< by which another collector noted the launch; 0: none did
  const char *kernel = nullptr;
  const char *device_kind = "CUDA";
  int32_t device_index = 0;
  uint64_t clock_hz = 0; ///< of the clock that `start_cycle` counts; 0: unknown
  TimerOffset timer;     ///< when the launch ran
  std::span<const CycleScope> scopes;
  std::span<const TimelineProgram> programs;
  std::span<const TimelineScope> instances;
  /// Instances that were not decoded, because no session had room for them; at most so many, and
  /// no others are here then.
  uint64_t left_out = 0;
};

} // namespace proton
