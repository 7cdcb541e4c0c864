// Python call paths of the calling thread.
#pragma once

#include <cstdint>

#include "context/python/python_lock.h"
#include "context/thread/current.h"
#include "record/record.h"

namespace proton {

/// Interns the calling thread's Python frames, "file:line@function" each; 0 when it has none.
/// Takes the GIL for frames never seen, and only then where frames are read from the interpreter's
/// own chain. A pending exception stays. [any thread, with or without the GIL, noexcept]
ContextId capture_python(const Situation &now) noexcept;
/// How waits give the lock up and take it back; not any more once `end_python_calls` was called.
extern const PythonLock kInterpreterLock;
/// From now on, frames never seen are named by threads that hold the GIL only; waits until no other
/// waits for it. To be called before the interpreter ends. [GIL held]
void end_python_calls() noexcept;
/// In a forked child: its parent's threads wait for nothing here.
void forget_python_calls_after_fork() noexcept;
/// Number of Python frames of the calling thread that a path would show. [GIL held]
uint32_t python_depth() noexcept;

} // namespace proton
