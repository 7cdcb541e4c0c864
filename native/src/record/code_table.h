// Hashes of compiled kernels behind numbers small enough for a launch record.
#pragma once

#include <cstdint>

namespace proton {

/// Number of the hash, added when it is new; 0 for hash 0 and once 65 535 differ. [any thread]
/// locks
uint16_t intern_code(uint64_t hash);
/// The hash behind a number that intern_code returned. [any thread, no lock]
uint64_t code_hash(uint16_t code) noexcept;

} // namespace proton
