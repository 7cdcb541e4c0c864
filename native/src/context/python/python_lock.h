// Releases Python's lock around waits, in code that the program may call with the lock held.
#pragma once

namespace proton {

/// How the calling thread releases the lock and takes it back. Set by the bindings. [any thread,
/// noexcept]
struct PythonLock {
  void *(*give_up)() noexcept;            ///< null: the thread does not hold it
  void (*take_back)(void *held) noexcept; ///< called for what is not null
};
/// `lock` lives as long as the process; null if there is none.
void set_python_lock(const PythonLock *lock) noexcept;

/// While an object lives, its thread does not hold Python's lock: what the thread waits for may
/// need a thread that wants the lock. Nests.
class WithoutPythonLock {
public:
  WithoutPythonLock() noexcept;
  ~WithoutPythonLock();
  WithoutPythonLock(const WithoutPythonLock &) = delete;
  WithoutPythonLock &operator=(const WithoutPythonLock &) = delete;

private:
  const PythonLock *lock_;
  void *held_;
};

// Waits for Python's lock, which end before the interpreter does.

/// A thread that waits for the GIL while the interpreter ends is terminated inside the wait, which
/// our callers do not survive; so `end_python_calls` lets waits through that began before. False:
/// do not wait, and do not call `end_python_wait`. [any thread]
bool begin_python_wait() noexcept;
void end_python_wait() noexcept;

/// A wait for the length of a block; true for a thread that holds the GIL already.
class MayWait {
public:
  MayWait() noexcept;
  ~MayWait();
  MayWait(const MayWait &) = delete;
  MayWait &operator=(const MayWait &) = delete;
  explicit operator bool() const noexcept { return is_allowed_; }

private:
  bool has_begun_;
  bool is_allowed_;
};

/// From now on, only threads that hold the GIL name new frames. Waits until no other thread waits
/// for it. Call before the interpreter ends. [GIL held]
void end_python_calls() noexcept;
/// Called in a forked child: its parent's threads wait for nothing here.
void forget_python_calls_after_fork() noexcept;

} // namespace proton
