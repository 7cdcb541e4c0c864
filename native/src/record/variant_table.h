// Process-wide table of variants for records that carry an index instead of a pointer.
#pragma once

#include <cstdint>

#include "record/record.h"

namespace proton {

/// Position of an equal variant, added when it is new; -1 once 65 536 differ. [any thread] locks
int32_t intern_variant(const VariantRecord &variant);
/// The variant at a position that intern_variant returned; null for -1. [any thread] locks
const VariantRecord *find_variant(int32_t position);

} // namespace proton
