#include "writer/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "support/file_identity.h"
#include "writer/output_target.h"
#include "writer/scratch_file.h"
#include "writer/signal_shield.h"

namespace proton {
namespace {

constexpr mode_t kMode = 0666; // less the process's umask
constexpr int kNames = 100;
// How often a name is tried that others give up or take at the same time.
constexpr int kTries = 8;
// A pipe or device in the place of a file must not block, and a terminal must not become ours.
constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

bool is_locked_elsewhere(int descriptor) noexcept {
  return flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool is_named(int descriptor, const std::string &path) noexcept {
  return FileIdentity::at(path.c_str()).is_of(descriptor);
}

// The name itself, then one with the number of the process.
std::string nth_name(const std::string &path, int number) {
  if (number == 0)
    return path;
  size_t dot = path.rfind('.');
  std::string process = '.' + std::to_string(getpid());
  return path.substr(0, dot) + (number == 1 ? process : process + '-' + std::to_string(number)) +
         path.substr(dot);
}

// Returns what `work` returns for the first name that it can take. It returns nothing, with errno
// EEXIST, for one that is taken.
template <typename Work>
auto with_free_name(const std::string &path, const std::string &named, Work work) {
  for (int number = 0; number < kNames; ++number) {
    const std::string name = nth_name(path, number);
    for (int i = 0; i < kTries; ++i) {
      if (auto done = work(name))
        return *std::move(done);
      if (errno != EEXIST)
        refuse_output(named, errno);
      if (!remove_left_over(name))
        break;
    }
  }
  refuse_output(named, EBUSY);
}

std::optional<OwnFile> make_locked(const std::string &path) {
  int descriptor = open(path.c_str(), kFlags | O_CREAT | O_EXCL, kMode);
  if (descriptor < 0)
    return std::nullopt;
  // Until it is locked, others may take it for a left over one.
  if (!is_locked_elsewhere(descriptor) && is_named(descriptor, path))
    return OwnFile{path, descriptor};
  close(descriptor);
  errno = EEXIST;
  return std::nullopt;
}

// Not rename, which would replace what another process has put there since.
std::optional<std::string> rename_to_free(const std::string &from, const std::string &to) {
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return to;
  }
  bool has_links = errno != EPERM && errno != ENOTSUP && errno != ENOSYS;
  if (has_links || FileIdentity::at(to.c_str()).inode != 0) {
    errno = has_links ? errno : EEXIST;
    return std::nullopt;
  }
  return rename(from.c_str(), to.c_str()) == 0 ? std::optional(to) : std::nullopt;
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

OwnFile open_partial(const std::string &path, const std::string &named) {
  return with_free_name(path, named, make_locked);
}

int reopen_partial(const std::string &path) noexcept {
  int descriptor = open(path.c_str(), kFlags);
  if (descriptor >= 0)
    flock(descriptor, LOCK_EX | LOCK_NB);
  return descriptor;
}

std::string move_partial(const std::string &from, const std::string &to, const std::string &named) {
  return with_free_name(to, named,
                        [&](const std::string &name) { return rename_to_free(from, name); });
}

std::string write_partial_file(const std::string &path, std::string_view content) {
  SignalShield shield;
  for (int number = 0; number < kNames; ++number) {
    std::string name = nth_name(path, number);
    struct stat facts{};
    if (lstat(name.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
      continue;
    ScratchFile file(name, path);
    if (int code = write_bytes(file.descriptor(), content); code != 0)
      refuse_output(path, code);
    file.take_place(false); // what is for killed processes need not outlive the machine
    return name;
  }
  refuse_output(path, EBUSY);
}

bool remove_left_over(const std::string &path) noexcept {
  int descriptor = open(path.c_str(), kFlags);
  if (descriptor < 0)
    return errno == ENOENT;
  struct stat facts{};
  bool is_file = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  bool is_free = false;
  // Only who has the lock removes the name, so that it is still this file's.
  if (is_file && !is_locked_elsewhere(descriptor))
    is_free = !is_named(descriptor, path) || unlink(path.c_str()) == 0;
  close(descriptor);
  return is_free;
}

} // namespace proton
