// Turns times of a vendor's clock into CLOCK_MONOTONIC by pairs of both.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

namespace proton {

/// Pairs of both clocks are noted now and then, and times between two of them are interpolated.
class ClockPairs {
public:
  /// Reads the vendor's clock in ns; false on failure.
  using Read = bool (*)(const void *library, uint64_t &time_ns) noexcept;

  /// Begins anew with a first pair.
  void start(Read read, const void *library) noexcept;
  /// How much the vendor's clock gained on ours since `start`, until the newest pair or `end`.
  /// [any thread]
  int64_t drift_ns() const noexcept { return drift_ns_.load(std::memory_order_relaxed); }
  /// Notes the drift up to now, and reads no pair until `start`.
  void end() noexcept;
  /// Notes a pair if the last one is old. [completing thread, one at a time]
  void observe() noexcept;
  int64_t monotonic(int64_t vendor_ns) const noexcept { return vendor_ns - offset_at(vendor_ns); }

private:
  struct Pair {
    int64_t vendor_ns;
    int64_t offset_ns; ///< vendor's time less ours
  };
  std::optional<Pair> read_both() const noexcept;
  int64_t offset_at(int64_t vendor_ns) const noexcept;

  std::atomic<Read> read_{nullptr}; ///< null: it has ended
  const void *library_ = nullptr;
  int64_t newest_ns_ = 0; ///< CLOCK_MONOTONIC of the newest pair
  std::deque<Pair> pairs_;
  std::optional<Pair> first_;
  std::atomic<int64_t> drift_ns_{0};
};

} // namespace proton
