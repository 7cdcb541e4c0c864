// Compiled kernels behind numbers small enough for a launch record.
#pragma once

#include <cstdint>
#include <string_view>

namespace proton {

/// Number of the code, added when it is new; 0 for hash 0 and once 65 535 differ. `config` is what
/// an autotuner chose for it, or empty. [any thread] locks
uint16_t intern_code(uint64_t hash, std::string_view config = {});
/// The hash behind a number that intern_code returned. [any thread, no lock]
uint64_t code_hash(uint16_t code) noexcept;
/// The configuration behind it; null without one. [any thread, no lock]
const char *code_config(uint16_t code) noexcept;

} // namespace proton
