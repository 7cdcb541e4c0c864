// Reports the scopes that are entered and left: to a Python function, with the depth of the
// thread's stack and, for a scope that was entered, (name, kind, generation), else None; and to
// tools that receive NVTX calls.
#pragma once

#include <Python.h>

#include "record/record.h"

namespace proton {

/// Whether there is an observer. Guarded by the GIL; read on the hot path of scopes.
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
