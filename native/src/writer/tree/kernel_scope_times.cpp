#include "writer/tree/kernel_scope_times.h"

#include <algorithm>
#include <cmath>

namespace proton {
namespace {

constexpr uint64_t kUnknownClockHz = 1'000'000'000; // as upstream takes it for all devices
constexpr uint64_t kLeastClockHz = 1'000'000;       // below it 43 bits of clock cannot be a time

} // namespace

uint64_t scope_clock_hz(const TimelineLaunch &launch) {
  return launch.clock_hz < kLeastClockHz ? kUnknownClockHz : launch.clock_hz;
}

uint64_t cycle_picoseconds(uint64_t cycles, uint64_t hz) {
  long double exact = static_cast<long double>(cycles) * 1e12L / static_cast<long double>(hz);
  return static_cast<uint64_t>(std::llroundl(exact));
}

// The first record closely follows the reading of `init_ns`; if it was replaced, the last record
// precedes `pre_final_ns`.
uint64_t first_cycle_ps(const TimelineLaunch &launch, const TimelineProgram &program,
                        uint64_t base_ns) {
  uint64_t init_ps = (program.init_ns - base_ns) * 1000;
  if (!program.is_lossy || program.pre_final_ns < program.init_ns)
    return init_ps;
  uint64_t final_ps = (program.pre_final_ns - base_ns) * 1000;
  uint64_t length_ps = cycle_picoseconds(program.last_cycle, scope_clock_hz(launch));
  return std::max(init_ps, final_ps - std::min(length_ps, final_ps));
}

} // namespace proton
