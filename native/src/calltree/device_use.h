// How busy devices were for a profile and for each of its top-level scopes.
#pragma once

#include <cstdint>
#include <vector>

namespace proton {

/// From the host's launch call to the start on the device. Two-digit log buckets: 8 per octave.
struct LaunchLatency {
  uint64_t count = 0;
  uint64_t clamped = 0; ///< not counted: negative, or over an hour
  int64_t sum_ns = 0, min_ns = 0, max_ns = 0;
  std::vector<uint32_t> buckets; ///< by `bucket`; shorter when the tail is empty

  /// Returns whether it counts: the clocks of host and device may disagree.
  bool add(int64_t latency_ns);
  void merge(const LaunchLatency &other);
  /// Below 8 each value has a bucket; above, the leading bit and the three bits behind it choose
  /// one.
  static uint32_t bucket(int64_t latency_ns) {
    auto value = static_cast<uint64_t>(latency_ns);
    if (value < 8)
      return static_cast<uint32_t>(value);
    auto octave = static_cast<uint32_t>(63 - __builtin_clzll(value));
    return (octave - 2) * 8 + static_cast<uint32_t>((value >> (octave - 3)) & 7);
  }
};

/// Gaps in which a device had nothing to do.
struct IdleTime {
  static constexpr int64_t kLongNs = 1'000'000; ///< no late launch: the host did something else

  int64_t all_ns = 0;
  int64_t long_ns = 0; ///< part of it in gaps of kLongNs and more

  void add_gap(int64_t gap_ns) {
    all_ns += gap_ns;
    long_ns += gap_ns >= kLongNs ? gap_ns : 0;
  }
  void add(const IdleTime &other) {
    all_ns += other.all_ns;
    long_ns += other.long_ns;
  }
};

/// One device's time, as seen by the whole profile or one top-level scope.
struct DeviceUse {
  uint32_t node = 0;      ///< the top-level scope; the root: the whole profile
  int32_t device = -1;    ///< index into the DeviceTable
  int64_t busy_ns = 0;    ///< something ran
  IdleTime idle;          ///< nothing ran, and the next thing to run was this scope's
  int64_t waiting_ns = 0; ///< part of busy_ns: nothing ran but kernels that wait for others
  int64_t uncertain_ns =
      0; ///< upper bound of more busy time: these records came too late to be placed
  LaunchLatency latency;
};

} // namespace proton
