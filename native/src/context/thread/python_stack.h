// Python call paths of the calling thread.
#pragma once

#include <cstdint>

#include "context/python/python_lock.h"
#include "context/thread/current.h"
#include "record/record.h"

namespace proton {

/// Interns the calling thread's Python frames, "file:line@function" each; 0 if it has none. Takes
/// the GIL; where frames are read from the interpreter's own chain, for new frames only. A pending
/// exception stays. [any thread, with or without the GIL, noexcept]
///   may_wait: false where the GIL's holder may wait for the calling thread. Where only Python's
///   API reads frames, there are none then without the GIL.
ContextId capture_python(const SessionState &now, bool may_wait) noexcept;
/// How waits release the lock and take it back.
extern const PythonLock kInterpreterLock;
/// Number of Python frames of the calling thread that a path would show. [GIL held]
uint32_t python_depth() noexcept;

} // namespace proton
