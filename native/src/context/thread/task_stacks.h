// The frames of tasks: asyncio's run in turn on one thread, each in a context of Python of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "context/thread/host_range.h"
#include "context/thread/shadow_stack.h"

struct _object; // PyObject

namespace proton {

struct ThreadState;

/// The context of Python that the calling thread runs in.
struct RunningContext {
  const void *context = nullptr; ///< null: none
  uint64_t version = 0;          ///< another one after every change of context
};
/// How it is read, without Python's lock; set by the bindings.
struct TaskSource {
  RunningContext (*running)() noexcept;
  /// The context from which a running one was entered; null: none.
  const void *(*around)(const void *context) noexcept;
};
/// Null: tasks are followed no more.
void set_task_source(const TaskSource *source) noexcept;

/// The tasks of one thread that opened scopes, or began below those of another one. Others share
/// the frames of what they were entered from, and of the thread itself in the end.
class TaskStacks {
public:
  /// References that the caller releases, with Python's lock and no other.
  struct References {
    _object *watch = nullptr;     ///< tells when the context dies; null: there is no such task
    _object *inherited = nullptr; ///< the path below which it began; may be null
  };

  bool are_there() const noexcept { return are_there_.load(std::memory_order_relaxed); }
  /// Puts the frames of the running task on the stack. Without memory those of another one stay.
  /// [owning thread, noexcept]
  void follow(ThreadState &thread) noexcept;
  /// Whether `context` has frames of its own. [owning thread]
  bool has(const void *context) const;
  /// The context whose frames are on the stack; null: those of the thread itself. [owning thread]
  const void *on_stack() const noexcept { return on_stack_->context.load(); }
  /// Gives a context that runs frames of its own, below `base`, and takes over the references. May
  /// throw std::bad_alloc, and then takes nothing. [owning thread]
  void add(ThreadState &thread, const void *context, ContextId base, const References &references);
  /// Drops the frames of a context that is gone, if it has some. [any thread, noexcept]
  References drop(ThreadState &thread, const void *context) noexcept;
  /// Drops the frames on the stack if none is open and their task began below no path.
  /// [owning thread, noexcept]
  References drop_empty(ThreadState &thread) noexcept;
  /// Another thread has the state from now on.
  void renew() noexcept { checked = followed_ = kNoVersion; }

  static constexpr uint64_t kNoVersion = ~uint64_t{0};
  /// Version of the context in which a scope was opened last, for the bindings.
  uint64_t checked = kNoVersion;

private:
  struct Task {
    std::atomic<const void *> context{nullptr}; ///< null: of the thread itself, or gone
    ShadowStack::Frames frames;
    RangeCounts counts;
    References references;
  };
  // With the lock of the frames.
  Task &task_of(const TaskSource &source, const void *context) noexcept;
  // Both put scopes that went without an end into `left`, for `keep_expired`.
  void put_on_stack(ThreadState &thread, Task &task, std::vector<StackEntry> &left);
  References take_out(ThreadState &thread, const void *context,
                      std::vector<StackEntry> &left) noexcept;

  std::atomic<bool> are_there_{false};
  bool knows_home_ = false;        ///< whether the stack does
  uint64_t followed_ = kNoVersion; ///< version of the context whose frames are on the stack
  Task home_;
  Task *on_stack_ = &home_;
  std::unordered_map<const void *, std::unique_ptr<Task>> tasks_; ///< by context
  std::unique_ptr<Task> gone_; ///< its frames are on the stack still
};

} // namespace proton
