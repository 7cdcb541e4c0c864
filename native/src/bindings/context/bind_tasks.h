// Scopes of tasks: which frames are those of the running context, and what begins below them.
#pragma once

#include <Python.h>

#include "context/thread/thread_state.h"

namespace proton {

/// The state of the calling thread, which holds Python's lock; null: it has none.
inline PyThreadState *running_state() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

void check_task(ThreadState &thread);
void tell_task(ThreadState &thread) noexcept;

/// The calling thread's state, for a scope that is about to be opened: if a task runs, its frames
/// are on the stack. [GIL held]
inline ThreadState &thread_for_scope() {
  ThreadState &thread = this_thread();
  if (thread.tasks.checked != running_state()->context_ver) [[unlikely]]
    check_task(thread);
  return thread;
}
/// Scopes of the thread were opened or closed: tasks that begin from now on begin below those that
/// are open. [GIL held, noexcept]
inline void scopes_changed(ThreadState &thread) noexcept {
  if (thread.tasks.are_there()) [[unlikely]]
    tell_task(thread);
}

} // namespace proton
