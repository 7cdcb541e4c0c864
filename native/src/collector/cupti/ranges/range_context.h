// Hardware counters of one context between two points of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver/cupti/cupti_profiler_host.h"
#include "driver/cupti/cupti_range_profiler.h"

namespace proton {

/// Ranges in the order of time.
struct CountedRanges {
  std::vector<int64_t> start_ns; ///< of CLOCK_MONOTONIC: after the device was idle
  std::vector<int64_t> end_ns;   ///< before anything else ran on it
  std::vector<double> values;    ///< one row of metrics for each range
  uint64_t lost = 0;
  cupti::Result error = cupti::kSuccess;
};

/// Ranges are pushed and popped: that works with graphs, which ranges that libcupti makes around
/// kernels do not, and with every library. The program runs once, so all metrics fit in one pass.
/// Not synchronised.
class RangeContext {
public:
  static constexpr size_t kMostRanges = 512; ///< until `finish`

  /// Switches counters on, for the first of the sets that the device counts in one pass. Throws
  /// Error(kUnavailable) that says why they cannot be.
  RangeContext(const CuptiLibrary &library, const CuptiRangeProfiler &cupti, void *context,
               int32_t device, const std::vector<std::vector<std::string>> &sets);
  ~RangeContext();
  RangeContext(const RangeContext &) = delete;
  RangeContext &operator=(const RangeContext &) = delete;

  int32_t device() const { return device_; }
  const std::vector<std::string> &metrics() const { return host_->metrics(); }
  /// Whether the counters run; the first `push` starts them, which takes 20 ms.
  bool is_started() const { return is_started_; }
  bool is_open() const { return is_open_; }
  bool is_full() const { return start_ns_.size() >= kMostRanges; }
  // The device is idle during the next two.
  cupti::Result push() noexcept;
  cupti::Result pop() noexcept;
  /// Stops the counters, which takes 10 ms, and reads what they counted.
  CountedRanges finish();

private:
  void schedule(const std::vector<std::vector<std::string>> &sets);
  void disable() noexcept;
  cupti::Result start() noexcept;
  void read(CountedRanges &ranges);

  const CuptiLibrary &library_;
  const CuptiRangeProfiler &cupti_;
  void *profiler_ = nullptr;
  int32_t device_;
  std::unique_ptr<CuptiProfilerHost> host_;
  std::vector<uint8_t> image_;
  std::vector<int64_t> start_ns_;
  std::vector<int64_t> end_ns_;
  bool is_started_ = false;
  bool is_open_ = false;
};

} // namespace proton
