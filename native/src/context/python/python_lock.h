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

} // namespace proton
