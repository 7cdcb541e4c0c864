#include "writer/file/output_target.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

#include "support/clock.h"
#include "support/error.h"
#include "writer/bytes/utf8_text.h"

namespace proton {
namespace {

constexpr int64_t kReaderPatience_ns = 5'000'000'000;
constexpr int kReaderPause_ms = 10;

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
  case ENXIO:
    return "where it is a pipe, start its reader first; or choose another output";
  case EPIPE:
    return "the reader of the pipe ended early: let it read to the end";
  default:
    return "choose another output";
  }
}

// Follows the links of a name, also if the file does not exist yet: a renamed file would replace
// the link.
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

} // namespace

void refuse_output(const std::string &path, int code) {
  throw Error(ErrorCode::kOutput, "cannot write '" + valid_utf8(path) + "': " +
                                      std::generic_category().message(code) + "; " + advice(code));
}

int open_device(const std::string &path) noexcept {
  int64_t deadline_ns = monotonic_ns() + kReaderPatience_ns;
  for (;;) {
    // Without O_NONBLOCK a pipe without a reader would block the program for ever.
    int descriptor = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat facts{};
    if (descriptor >= 0) {
      if (fstat(descriptor, &facts) == 0 && !S_ISREG(facts.st_mode))
        return descriptor;
      close(descriptor); // a file has taken its name
      errno = ESTALE;
      return -1;
    }
    if (errno != ENXIO)
      return -1;
    bool waits = stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode);
    if (!waits || monotonic_ns() >= deadline_ns) {
      errno = ENXIO;
      return -1;
    }
    poll(nullptr, 0, kReaderPause_ms);
  }
}

OutputTarget find_target(const std::string &path) {
  if (path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::kOutput, "cannot write '" + valid_utf8(path.substr(0, path.find('\0'))) +
                                        "...': the name holds a NUL byte; choose another output");
  }
  struct stat target{};
  bool exists = stat(path.c_str(), &target) == 0;
  // For instance a circle of links, or another user's link in a shared folder, which the system
  // does not follow.
  if (!exists && errno != ENOENT)
    refuse_output(path, errno);
  if (exists && S_ISDIR(target.st_mode))
    refuse_output(path, EISDIR);
  if (exists && !S_ISREG(target.st_mode))
    return {path, true};
  return {without_links(path), false};
}

int write_bytes(int descriptor, std::string_view content) {
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

} // namespace proton
