// The devices that records name: their vendor's facts, and the tick of their timers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "record/device.h"

namespace proton {

// The source of facts about devices.

/// A vendor's description of a device; 0 and "" where it does not answer.
struct DeviceDescription {
  Device device;
  std::string name;
  std::string uuid;
};

class DeviceSource {
public:
  virtual ~DeviceSource() = default;
  /// Facts about the device with this number in records. May throw std::bad_alloc.
  virtual DeviceDescription describe(int32_t device) const = 0;
};

class DeviceFacts {
public:
  struct Facts {
    DeviceDescription driver;
    int64_t tick_ns = 0; ///< 0: too few kernels to tell
  };

  /// Sets the source of facts about new devices. Call before the first note.
  void set_source(const DeviceSource *source) { source_ = source; }
  /// Notes a record's duration on the device; 0 says nothing of the timer. A new device is added to
  /// the device table. [completing thread, one at a time, noexcept]
  void note(int32_t device, int64_t duration_ns) noexcept {
    if (device != newest_ && !find(device))
      return;
    if (duration_ns <= 0)
      return;
    int bits = std::min(zero_bits(static_cast<uint64_t>(duration_ns)), kBits);
    std::atomic<uint64_t> &count = ticks_->multiples[static_cast<size_t>(bits)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Facts by device, for the provenance. [any thread]
  std::map<int32_t, Facts> list() const;

private:
  static constexpr int32_t kNone = INT32_MIN; ///< -1 is a device that its vendor does not know
  static constexpr int kBits = 12;
  static constexpr int kRoundedBits = 4; ///< below 16 ns too many durations are next to a multiple
  struct Ticks {
    std::array<std::atomic<uint64_t>, kBits + 1>
        multiples{}; ///< durations by their number of zero bits
  };
  /// The number of zero bits, or a neighbour's: where timestamps change to another clock both ends
  /// of a launch are rounded, and a third of the durations on an H200 are off by 1 ns.
  static int zero_bits(uint64_t duration_ns) noexcept {
    int exact = std::countr_zero(duration_ns);
    int above = std::countr_zero(duration_ns + 1);
    int below = duration_ns > 1 ? std::countr_zero(duration_ns - 1) : 0;
    int rounded = std::max(above, below);
    return rounded < kRoundedBits ? exact : std::max(exact, rounded);
  }
  struct Entry {
    DeviceDescription driver;
    Ticks ticks;
  };
  bool find(int32_t device) noexcept;

  const DeviceSource *source_ = nullptr;
  mutable std::mutex mutex_; ///< for the map; only the completing thread counts
  std::map<int32_t, Entry> entries_;
  int32_t newest_ = kNone;
  Ticks *ticks_ = nullptr;
};

} // namespace proton
