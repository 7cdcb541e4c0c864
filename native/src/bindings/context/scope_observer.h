// Tells of the scopes that are entered and left: a Python function, of the depth of the thread's
// stack then, with (name, kind, birth) of a scope that was entered or None; and tools that receive
// NVTX calls.
#pragma once

#include <Python.h>

#include "record/record.h"

namespace proton {

/// Whether anybody is told. Guarded by the GIL; read on the hot path of scopes.
extern bool g_scopes_are_observed;

void tell_scope_entered(PyObject *name, FrameKind kind) noexcept;
void tell_scope_left() noexcept;

/// A scope of the calling thread was entered; its name is a str. [GIL held]
inline void scope_entered(PyObject *name, FrameKind kind) noexcept {
  if (g_scopes_are_observed) [[unlikely]]
    tell_scope_entered(name, kind);
}
/// One or more scopes of the calling thread were left. [GIL held]
inline void scope_left() noexcept {
  if (g_scopes_are_observed) [[unlikely]]
    tell_scope_left();
}

} // namespace proton
