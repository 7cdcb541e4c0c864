// Keeps signals that come from writing away from the process.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace proton {

/// A file size limit and a closed pipe also send signals, which would end the process. The kernel
/// sends both to the writing thread, so blocking them here and discarding what came is enough.
class SignalShield {
public:
  SignalShield() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGXFSZ);
    sigaddset(&signals_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    // A signal that was pending already is not ours to discard.
    sigset_t pending;
    sigpending(&pending);
    had_pending_ = sigismember(&pending, SIGXFSZ) == 1 || sigismember(&pending, SIGPIPE) == 1;
  }
  ~SignalShield() {
    timespec no_wait{};
    while (!had_pending_ && sigtimedwait(&signals_, nullptr, &no_wait) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalShield(const SignalShield &) = delete;
  SignalShield &operator=(const SignalShield &) = delete;

private:
  sigset_t signals_{};
  sigset_t before_{};
  bool had_pending_ = false;
};

} // namespace proton
