// How often program counters are sampled by default.
#pragma once

#include <cstdint>

namespace proton {

/// Exponent of the shortest period, in cycles, at which all multiprocessors together make at most
/// 16 million samples a second: 2^14 on an H200. That takes a few percent of one processor, and a
/// kernel of 100 us is still sampled more than a thousand times. 2^14 if the facts are unknown (0).
uint32_t automatic_period_log2(int64_t multiprocessors, int64_t clock_rate_khz) noexcept;

} // namespace proton
