// How many instructions of each class the code of a kernel has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace proton {

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
