// Files that appear whole or not at all, what they replace, and the errors where they cannot.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>
#include <string>
#include <string_view>

#include "support/error.h"

namespace proton {

/// Writes `content` beside `path`, or beside the file that it links to, flushes it to the disk and
/// renames it into place. Devices, pipes and sockets at `path` are written in place; "" and "-" are
/// standard output. Throws Error(kOutput) with the path, the reason and what to do, and leaves an
/// older file at `path` and its partial file untouched; or throws NotFlushed.
void write_file(const std::string &path, std::string_view content);

/// What a file would replace.
struct OutputTarget {
  std::string file;       ///< behind all links, also where it does not exist yet
  bool is_device = false; ///< or a pipe or a socket: it is written in place
};

/// Throws Error(kOutput) for a folder, a circle of links and a name that no file can have.
OutputTarget find_target(const std::string &path);

/// Throws Error(kOutput) with the path, the reason and what to do.
[[noreturn]] void refuse_output(const std::string &path, int code);

/// Opens a device, pipe or socket to write to. A named pipe that has no reader gets five seconds
/// for one. Returns a descriptor, or -1 with errno.
int open_device(const std::string &path) noexcept;

/// Writes all of it; returns 0 or the error number.
int write_bytes(int descriptor, std::string_view content);

/// The file is in place, but a loss of power may undo that. The message says so.
class NotFlushed : public Error {
public:
  NotFlushed(const std::string &named, int code);
};

/// A new file beside its future place. It is removed unless it takes that place.
class ScratchFile {
public:
  /// Throws Error(kOutput) that names `named`, as `take_place` does.
  ///   place: with all links followed.
  ScratchFile(std::string place, std::string named);
  ~ScratchFile();
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;

  int descriptor() const { return descriptor_; }
  const std::string &path() const { return path_; }
  /// Replaces what is there, even a link itself. May also throw NotFlushed.
  void take_place();
  /// Call if it got another name: hands over its descriptor.
  int release() noexcept;

private:
  std::string place_;
  std::string named_;
  std::string path_; ///< empty: it has taken its place
  int descriptor_ = -1;
};

/// Flushes a file, renames it, and flushes the folder, as every finished recording needs. Throws
/// Error(kOutput) that names `named`, or NotFlushed.
void put_in_place(int descriptor, const std::string &from, const std::string &to,
                  const std::string &named);

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
