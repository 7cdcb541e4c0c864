// Tells a Python function of the scopes that are entered and left: of the depth of the thread's
// stack then, with (name, kind, birth) of a scope that was entered or None.
#pragma once

#include <Python.h>

#include "record/record.h"

namespace proton {

/// Null: nobody is told. Guarded by the GIL; read on the hot path of scopes.
extern PyObject *g_scope_observer;

void tell_scope_entered(PyObject *name, FrameKind kind) noexcept;
void tell_scope_left() noexcept;

/// A scope of the calling thread was entered; its name is a str. [GIL held]
inline void scope_entered(PyObject *name, FrameKind kind) noexcept {
  if (g_scope_observer) [[unlikely]]
    tell_scope_entered(name, kind);
}
/// One or more scopes of the calling thread were left. [GIL held]
inline void scope_left() noexcept {
  if (g_scope_observer) [[unlikely]]
    tell_scope_left();
}

} // namespace proton
