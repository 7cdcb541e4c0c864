// When programs of an instrumented kernel, and the scopes inside it, ran on the device's timer.
#pragma once

#include <cstdint>

#include "calltree/scope_timeline.h"

namespace proton {

/// Rate of the clock that counts cycles; upstream's guess if it is not known.
uint64_t scope_clock_hz(const TimelineLaunch &launch);

/// Picoseconds in `cycles` cycles.
uint64_t cycle_picoseconds(uint64_t cycles, uint64_t hz);

/// Where cycle 0 of the program's scopes is: picoseconds after `base_ns` of the timer, which must
/// not be after the program's beginning.
uint64_t first_cycle_ps(const TimelineLaunch &launch, const TimelineProgram &program,
                        uint64_t base_ns);

} // namespace proton
