#include "collector/cupti/pc_sampling/pc_period.h"

#include "driver/cupti/cupti_pc_sampling_abi.h"

namespace proton {
namespace {

constexpr int64_t kTargetPerSecond = 16'000'000;
constexpr uint32_t kUnknownLog2 = 14;

} // namespace

uint32_t automatic_period_log2(int64_t multiprocessors, int64_t clock_rate_khz) noexcept {
  if (multiprocessors <= 0 || clock_rate_khz <= 0)
    return kUnknownLog2;
  // A multiprocessor makes one sample in each period.
  int64_t cycles_per_second = multiprocessors * clock_rate_khz * 1000;
  uint32_t exponent = cupti::kSmallestPeriodLog2;
  while (exponent < cupti::kLargestPeriodLog2 && (cycles_per_second >> exponent) > kTargetPerSecond)
    ++exponent;
  return exponent;
}

} // namespace proton
