// Everything a thread owns, and the list of all threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "context/python/python_path.h"
#include "context/thread/host_range.h"
#include "context/thread/shadow_stack.h"
#include "context/thread/task_stacks.h"
#include "record/record_log.h"

namespace proton {

/// The launch call that the thread noted last.
struct OpenCall {
  uint64_t correlation_id = 0; ///< 0: none
  int64_t called_ns = 0;       ///< of TickClock
  uint64_t position = 0;       ///< of its record in the log
};

/// Lives for the whole process; reused by a later thread after its owner ended.
struct ThreadState {
  /// Number of the thread that has the state now. No two threads have the same.
  uint32_t number = kNoThread;
  std::atomic<uint64_t> handle{0}; ///< the system's for that thread; 0: it has ended
  TaskStacks tasks;
  ShadowStack stack; ///< of the task that runs, or of the thread alone
  PythonPath python;
  RecordLog<LaunchEntry, true> launches; ///< marked with how long the call took, in ns
  RecordLog<HostEntry> host;             ///< ranges and values
  OpenCall call;
  uint64_t newest_kernel = 0;     ///< correlation id of the launch; 0: unknown
  uint32_t launching = kNoThread; ///< the reader's: number of the thread whose launches come next
  bool is_fixed = false;          ///< the reader's: it has not consumed to the ends that it fixed
  std::atomic<ThreadState *> next{nullptr}; ///< made after this one
  RangeCounts counts;                       ///< of the ranges on its stack
};

/// A thread by the system's number, and Python's name or else the system's.
struct ThreadLabel {
  int64_t thread_id = 0; ///< 0: unknown
  std::string name;
};

/// The calling thread's state, made on first use; the frames of the task that runs are on its
/// stack.
ThreadState &this_thread();
/// The oldest state; null while there is none. [any thread]
ThreadState *first_thread() noexcept;
/// Visits the state of every thread, also of ended ones, oldest first. Locks nothing.
template <typename Visit> void for_each_thread(Visit &&visit) {
  for (ThreadState *state = first_thread(); state;
       state = state->next.load(std::memory_order_acquire))
    visit(*state);
}
/// The label of the thread with this number, which may have ended; an unknown one if thousands
/// ended later. Reads the current name of a living thread. Locks the list.
ThreadLabel label_of_thread(uint32_t number);
/// In a forked child: forgets the frames of threads that do not exist there.
void reset_threads_after_fork() noexcept;

} // namespace proton
