#include "writer/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "support/error.h"
#include "writer/utf8_text.h"

namespace proton {
namespace {

// Ends the name of a file that replaces a partial one; no reader takes it for a profile.
constexpr const char *kNew = ".new";

const char *advice(int code) {
  switch (code) {
  case ENOSPC:
  case EDQUOT:
    return "free space there or choose another output folder";
  case EFBIG:
    return "raise the file size limit (ulimit -f) or choose a smaller format";
  case EACCES:
  case EPERM:
  case EROFS:
    return "choose an output in a folder you may write to";
  case ENOENT:
  case ENOTDIR:
    return "create the folder first or choose another output";
  case EISDIR:
    return "a folder has that name: choose another output name";
  case ENAMETOOLONG:
    return "choose a shorter output name";
  case EPIPE:
    return "the reader of the pipe ended early: let it read to the end";
  default:
    return "choose another output";
  }
}

[[noreturn]] void fail(const std::string &path, int code) {
  throw Error(ErrorCode::kOutput, "cannot write '" + valid_utf8(path) + "': " +
                                      std::generic_category().message(code) + "; " + advice(code));
}

// A file size limit and a closed pipe also send signals, which would end the process. The kernel
// sends both to the writing thread, so blocking them here and discarding what came is enough.
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

// Returns 0 or the error number.
int write_all(int descriptor, std::string_view content) {
  // Linux writes at most 0x7ffff000 bytes at once; smaller pieces also keep pipes responsive.
  constexpr size_t kPiece = size_t{1} << 30;
  while (!content.empty()) {
    ssize_t written = write(descriptor, content.data(), std::min(content.size(), kPiece));
    if (written >= 0) {
      content.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{descriptor, POLLOUT, 0};
      poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Opens, writes and closes; returns 0 or the error number.
int write_new(const std::string &path, int flags, std::string_view content) {
  constexpr mode_t kMode = 0666; // less the process's umask
  int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, kMode);
  if (descriptor < 0)
    return errno;
  int code = write_all(descriptor, content);
  // Network file systems report a full disk only here.
  if (close(descriptor) != 0 && code == 0 && errno != EINTR)
    code = errno;
  return code;
}

// The name of the file that a name stands for through links, also where it does not exist yet: a
// renamed file would take the place of the link.
std::string without_links(std::string path) {
  constexpr int kMaxLinks = 40; // as in the kernel
  std::array<char, PATH_MAX> text{};
  for (int i = 0; i < kMaxLinks; ++i) {
    ssize_t size = readlink(path.c_str(), text.data(), text.size());
    if (size <= 0)
      break; // no link
    std::string target(text.data(), static_cast<size_t>(size));
    path = target.front() == '/' ? target : path.substr(0, path.rfind('/') + 1) + target;
  }
  return path;
}

// Writes a file under another name and renames it.
void replace_file(const std::string &path, const std::string &temporary, std::string_view content) {
  int code = write_new(temporary, O_CREAT | O_TRUNC, content);
  if (code == 0 && rename(temporary.c_str(), path.c_str()) != 0)
    code = errno;
  if (code != 0) {
    unlink(temporary.c_str());
    fail(path, code);
  }
}

} // namespace

std::string partial_path(const std::string &path) {
  size_t slash = path.rfind('/');
  size_t start = slash == std::string::npos ? 0 : slash + 1;
  size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= start)
    dot = path.size();
  return path.substr(0, dot) + ".partial" + path.substr(dot);
}

void write_atomically(const std::string &path, std::string_view content) {
  if (path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::kOutput, "cannot write '" + valid_utf8(path.substr(0, path.find('\0'))) +
                                        "...': the name holds a NUL byte; choose another output");
  }
  SignalShield shield;
  struct stat target {};
  bool exists = stat(path.c_str(), &target) == 0;
  if (!exists && errno == ELOOP)
    fail(path, ELOOP);
  if (exists && S_ISDIR(target.st_mode))
    fail(path, EISDIR);
  if (exists && !S_ISREG(target.st_mode)) {
    if (int code = write_new(path, 0, content); code != 0)
      fail(path, code);
    return;
  }
  std::string file = without_links(path);
  std::string partial = partial_path(file);
  struct stat earlier {};
  if (stat(partial.c_str(), &earlier) != 0) {
    replace_file(file, partial, content);
    return;
  }
  // What was flushed while recording stays readable until the new file is whole.
  replace_file(file, partial + kNew, content);
  unlink(partial.c_str());
}

void write_partial_file(const std::string &path, std::string_view content) {
  SignalShield shield;
  replace_file(path, path + kNew, content);
}

void write_to_stdout(std::string_view content) {
  SignalShield shield;
  if (int code = write_all(STDOUT_FILENO, content); code != 0)
    fail("standard output", code);
}

} // namespace proton
