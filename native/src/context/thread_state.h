// Everything a thread owns, and the list of all threads.
#pragma once

#include <functional>

#include "context/python_path.h"
#include "context/shadow_stack.h"
#include "record/record_log.h"

namespace proton {

/// Lives for the whole process; reused by a later thread after its owner ended.
struct ThreadState {
  ShadowStack stack;
  PythonPath python;
  RecordLog<LaunchRecord> launches;
  RecordLog<RangeRecord> ranges;
};

/// The calling thread's state, made on first use.
ThreadState &this_thread();
/// Visits the state of every thread, also of ended ones. Locks the list; `visit` may take only the
/// innermost locks: the tables of names, devices and variants.
void for_each_thread(const std::function<void(ThreadState &)> &visit);
/// In a forked child: forgets the frames of threads that do not exist there.
void reset_threads_after_fork() noexcept;

} // namespace proton
