// Waits for Python's lock, which end before the interpreter does.
#pragma once

namespace proton {

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
