// Python call paths through the public frame API.
#pragma once

#include <cstdint>

#include "context/current.h"
#include "record/record.h"

namespace proton {

/// Interns the calling thread's Python frames, "file:line@function" each; 0 when it has none.
/// Takes the GIL when the thread does not hold it. [any thread, noexcept]
ContextId capture_python(const Situation &now) noexcept;
/// Number of Python frames of the calling thread that a path would show. [GIL held]
uint32_t python_depth() noexcept;
/// Drops the names of frames and with them the references to code objects. [GIL held]
void forget_python_frames() noexcept;

} // namespace proton
