// Stands in for flock in the program that includes it: fails when asked to, as on a file system
// that has no locks.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

inline int flock_error = 0; ///< what it answers; 0: it does it

extern "C" int flock(int descriptor, int operation) noexcept {
  errno = flock_error;
  return flock_error != 0 ? -1 : static_cast<int>(syscall(SYS_flock, descriptor, operation));
}

/// Whether the lock on a file is held, also by another descriptor of this process.
inline bool is_locked(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool is_held = syscall(SYS_flock, descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return is_held;
}

/// Limits the descriptors of the program while it lives.
class FewDescriptors {
public:
  explicit FewDescriptors(rlim_t count) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few{count, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors &) = delete;
  FewDescriptors &operator=(const FewDescriptors &) = delete;

private:
  rlimit before_{};
};
