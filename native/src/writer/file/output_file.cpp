#include "writer/file/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <utility>

#include "support/clock.h"
#include "writer/bytes/utf8_text.h"
#include "writer/file/partial_file.h"

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

constexpr mode_t kScratchMode = 0666; // less the process's umask
constexpr int kScratchTries = 100;

std::string folder_of(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

int flush_file(int descriptor) noexcept {
  while (fsync(descriptor) != 0)
    if (errno != EINTR)
      return errno;
  return 0;
}

// Some file systems cannot flush a folder, and some folders may not be read: nothing can be done
// then.
int flush_folder(const std::string &folder) noexcept {
  int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return errno == EACCES ? 0 : errno;
  int code = flush_file(descriptor);
  close(descriptor);
  return code == EINVAL || code == ENOTSUP || code == ENOSYS || code == EBADF ? 0 : code;
}

// A name as in proton_bench/support/files.py; "" with errno if the system gives no random number.
std::string scratch_name() {
  uint64_t number = 0;
  ssize_t size = 0;
  do
    size = getrandom(&number, sizeof number, 0);
  while (size < 0 && errno == EINTR);
  if (size != sizeof number)
    return {};
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), ".proton-tmp-%016llx",
                static_cast<unsigned long long>(number));
  return name.data();
}

// Returns 0 or the error number.
int write_device(const std::string &path, std::string_view content) {
  int descriptor = open_device(path);
  if (descriptor < 0)
    return errno;
  int code = write_bytes(descriptor, content);
  // Network file systems report a full disk only here.
  if (close(descriptor) != 0 && code == 0 && errno != EINTR)
    code = errno;
  return code;
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

ScratchFile::ScratchFile(std::string place, std::string named)
    : place_(std::move(place)), named_(std::move(named)) {
  const std::string folder = folder_of(place_);
  for (int i = 0; i < kScratchTries && descriptor_ < 0; ++i) {
    std::string name = scratch_name();
    if (name.empty())
      refuse_output(named_, errno);
    path_ = folder + '/' + name;
    descriptor_ =
        open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
             kScratchMode);
    if (descriptor_ < 0 && errno != EEXIST)
      break;
  }
  if (descriptor_ < 0)
    refuse_output(named_, errno);
}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0)
    close(descriptor_);
  if (!path_.empty())
    unlink(path_.c_str());
}

void ScratchFile::take_place() {
  put_in_place(descriptor_, path_, place_, named_);
  path_.clear();
}

int ScratchFile::release() noexcept {
  path_.clear();
  return std::exchange(descriptor_, -1);
}

NotFlushed::NotFlushed(const std::string &named, int code)
    : Error(ErrorCode::kOutput,
            "'" + valid_utf8(named) +
                "' is in its place, but after a loss of power what was there before may be back: "
                "its folder cannot be flushed: " +
                std::generic_category().message(code)) {}

void put_in_place(int descriptor, const std::string &from, const std::string &to,
                  const std::string &named) {
  if (int code = flush_file(descriptor); code != 0)
    refuse_output(named, code);
  if (rename(from.c_str(), to.c_str()) != 0)
    refuse_output(named, errno);
  if (int code = flush_folder(folder_of(to)); code != 0)
    throw NotFlushed(named, code);
}

void write_file(const std::string &path, std::string_view content) {
  SignalShield shield;
  if (path.empty() || path == "-") {
    if (int code = write_bytes(STDOUT_FILENO, content); code != 0)
      refuse_output("standard output", code);
    return;
  }
  OutputTarget target = find_target(path);
  if (target.is_device) {
    if (int code = write_device(path, content); code != 0)
      refuse_output(path, code);
    return;
  }
  ScratchFile file(target.file, path);
  if (int code = write_bytes(file.descriptor(), content); code != 0)
    refuse_output(path, code);
  file.take_place();
  // What was flushed while recording stays readable until the new file is complete.
  remove_left_over(partial_path(target.file));
}

} // namespace proton
