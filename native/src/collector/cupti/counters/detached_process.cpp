#include "collector/cupti/counters/detached_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

// clone() under the name that sanitizers leave alone: theirs takes the child for a fork, with
// memory of its own.
extern "C" int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

namespace proton {
namespace {

constexpr int kFirstOther = 3; // descriptor that is not a standard stream
constexpr size_t kStackBytes = 256 * 1024;
constexpr int kEndMs = 10'000; // a GPU's driver may take long to let go
// Headers of old systems have none of these.
constexpr long kOpenHandle = 434;     // pidfd_open
constexpr long kSignalByHandle = 424; // pidfd_send_signal
constexpr auto kByHandle = static_cast<idtype_t>(3);

std::vector<char *> pointers(const std::vector<std::string> &texts) {
  std::vector<char *> found;
  for (const std::string &text : texts)
    found.push_back(const_cast<char *>(text.c_str()));
  found.push_back(nullptr);
  return found;
}

/// What the process has: its input, and nothing else of the program.
class SpawnFiles {
public:
  explicit SpawnFiles(int input) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    close_inherited();
  }
  ~SpawnFiles() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnFiles(const SpawnFiles &) = delete;
  SpawnFiles &operator=(const SpawnFiles &) = delete;
  const posix_spawn_file_actions_t *get() const { return &actions_; }

private:
  void close_inherited() {
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
      return;
    while (const dirent *entry = readdir(folder)) {
      int descriptor = std::atoi(entry->d_name);
      int flags = descriptor < kFirstOther ? -1 : fcntl(descriptor, F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0)
        posix_spawn_file_actions_addclose(&actions_, descriptor);
    }
    closedir(folder);
  }

  posix_spawn_file_actions_t actions_;
};

/// A process group of its own, so that Ctrl-C does not end it before the program is done, and
/// signals as usual: those of the calling thread are blocked.
class SpawnAttributes {
public:
  SpawnAttributes() {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                               POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes &) = delete;
  SpawnAttributes &operator=(const SpawnAttributes &) = delete;
  const posix_spawnattr_t *get() const { return &attributes_; }

private:
  posix_spawnattr_t attributes_;
};

struct Start {
  const char *path;
  const posix_spawn_file_actions_t *files;
  const posix_spawnattr_t *attributes;
  char *const *command;
  char *const *environment;
  DetachedProcess started;
};

/// In the passing process. It has the memory and the descriptors of the program.
int start_and_pass(void *argument) {
  auto &start = *static_cast<Start *>(argument);
  pid_t process = 0;
  start.started.error = posix_spawn(&process, start.path, start.files, start.attributes,
                                    start.command, start.environment);
  if (start.started.error == 0)
    start.started.handle = move_from_streams(static_cast<int>(syscall(kOpenHandle, process, 0)));
  return 0;
}

} // namespace

// No signal is named in the flags. So the passing process sends none at its end, and is a child
// only for those who wait with __WCLONE. What it has started belongs to the system's first process
// then. Copying no memory and waiting for it (CLONE_VFORK) is what posix_spawn does too.
DetachedProcess start_detached(const std::vector<std::string> &command,
                               const std::vector<std::string> &environment, int input) {
  SpawnFiles files(input);
  SpawnAttributes attributes;
  std::vector<char *> words = pointers(command), variables = pointers(environment);
  Start start{words[0], files.get(), attributes.get(), words.data(), variables.data(), {}};
  auto stack = std::make_unique<std::byte[]>(kStackBytes);
  pid_t passing = __clone(start_and_pass, stack.get() + kStackBytes,
                          CLONE_VM | CLONE_VFORK | CLONE_FILES, &start);
  if (passing < 0)
    return {errno, -1};
  while (waitpid(passing, nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
  return start.started;
}

int move_from_streams(int descriptor) noexcept {
  if (descriptor < 0 || descriptor >= kFirstOther)
    return descriptor;
  int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstOther);
  int code = errno;
  close(descriptor);
  errno = code;
  return moved;
}

void end_detached(int handle) noexcept {
  syscall(kSignalByHandle, handle, SIGKILL, nullptr, 0);
  pollfd ended{handle, POLLIN, 0};
  poll(&ended, 1, kEndMs);
  // A program that is the system's first process, or stands in for it, has it as a child after all.
  siginfo_t info{};
  waitid(kByHandle, static_cast<id_t>(handle), &info, WEXITED | WNOHANG);
  close(handle);
}

} // namespace proton
