// The instructions in the text of a kernel, as its compiler wrote it.
#pragma once

#include <string_view>

#include "record/code_table.h"

namespace proton {

enum class CodeLanguage : uint8_t {
  kPtx,    ///< PTX ISA 9.0
  kAmdGcn, ///< the assembly of LLVM's AMDGPU target
};

/// Counts the instructions of a text by class; any text has a result, after a time that grows with
/// its length. Moves, parameters, waits and whatever else no class holds are not counted.
InstructionMix count_instructions(std::string_view text, CodeLanguage language);

} // namespace proton
