// Compiled kernels behind numbers small enough for a launch record.
#pragma once

#include <array>
#include <cstddef>
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

// How many instructions of each class the code of a kernel has.

enum class InstructionClass : uint8_t {
  kGlobalLoad,
  kGlobalStore,
  kSharedLoad,
  kSharedStore,
  kLocalLoad,
  kLocalStore,
  kAsyncCopy,
  kTensorMemory,
  kAtomic,
  kMma,
  kFp64,
  kFp32,
  kFp16,
  kInteger,
  kSpecial,
  kConversion,
  kShuffle,
  kBarrier,
  kBranch,
};
inline constexpr size_t kInstructionClasses = static_cast<size_t>(InstructionClass::kBranch) + 1;

/// As files and reports name them, in the order of the enumeration.
inline constexpr std::array<std::string_view, kInstructionClasses> kInstructionNames = {
    "global loads", "global stores", "shared loads",  "shared stores", "local loads",
    "local stores", "async copies",  "tensor memory", "atomics",       "mma",
    "fp64",         "fp32",          "fp16",          "integer",       "special",
    "conversions",  "shuffles",      "barriers",      "branches",
};

/// Counts by InstructionClass.
using InstructionMix = std::array<uint32_t, kInstructionClasses>;

/// Notes the mix of the code with a hash, for the life of the process; the first one stays, and
/// past 65 536 codes none is added. [any thread] locks
void note_instructions(uint64_t code_hash, const InstructionMix &mix);
/// The mix of a code; null if it is not known. It stays where it is. [any thread] locks
const InstructionMix *find_instructions(uint64_t code_hash);

} // namespace proton
