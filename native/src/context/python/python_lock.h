// Python's lock, for those who wait where the program may hold it.
#pragma once

namespace proton {

/// How the calling thread gives the lock up, and takes it back with what it got for it. Set by the
/// binding room. [any thread, noexcept]
struct PythonLock {
  void *(*give_up)() noexcept;            ///< null: the thread does not hold it
  void (*take_back)(void *held) noexcept; ///< called for what is not null
};
/// `lock` lives as long as the process; null: there is none.
void set_python_lock(const PythonLock *lock) noexcept;

/// While one lives, its thread does not hold Python's lock: what it waits for may need a thread
/// that wants it. Nests.
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
