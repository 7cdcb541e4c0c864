#include "collector/cupti/counters/sampling_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "collector/cupti/counters/sampling_service.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr int kFirstFree = 3; // descriptor of the process
constexpr uint64_t kMostAnswered = 1 << 24;
constexpr int kBetweenLooksMs = 100; // at the time by which to end
constexpr const char *kWhat = "the process that samples counters ";

/// Of descriptors: a child that is forked while one is made would keep it.
std::mutex &descriptors() {
  static auto *mutex = [] {
    auto *made = new std::mutex; // outlives threads of the target
    guard_across_fork(*made, LockRank::kSamplingProcess);
    return made;
  }();
  return *mutex;
}

SamplingProcess *g_present = nullptr; ///< under the same lock

[[noreturn]] void refuse(const std::string &what, int error) {
  throw Error(ErrorCode::kUnavailable, kWhat + what + ": " + std::strerror(error));
}

std::vector<char *> pointers(const std::vector<std::string> &texts) {
  std::vector<char *> found;
  for (const std::string &text : texts)
    found.push_back(const_cast<char *>(text.c_str()));
  found.push_back(nullptr);
  return found;
}

/// What the process has: the socket as its input, and nothing else of the target.
class SpawnFiles {
public:
  explicit SpawnFiles(int socket) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
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
      int flags = descriptor < kFirstFree ? -1 : fcntl(descriptor, F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0)
        posix_spawn_file_actions_addclose(&actions_, descriptor);
    }
    closedir(folder);
  }

  posix_spawn_file_actions_t actions_;
};

/// A process group of its own, so that Ctrl-C does not end it before the target is done, and
/// signals as usual: those of the sampling threads are blocked.
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

/// Moves it to a number that the process does not use; -1 with `errno`.
int free_descriptor(int descriptor) {
  if (descriptor < 0)
    return -1;
  int free = fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFree);
  close(descriptor);
  return free;
}

/// Whether it is still ours to be ended: the target may wait for any child, and then its number may
/// be that of another process.
bool is_ours(pid_t process) noexcept {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

/// The text of a request.
std::string text_of(const std::string &library, const std::string &uuid,
                    const std::vector<std::vector<std::string>> &sets) {
  std::string text = library + '\0' + uuid + '\0';
  for (const std::vector<std::string> &metrics : sets) {
    for (const std::string &metric : metrics)
      text += metric + '\0';
    text += '\0';
  }
  return text;
}

} // namespace

SamplingProcess::SamplingProcess(const CounterOptions &options, std::string library)
    : options_(options), library_(std::move(library)),
      end_by_ns_(std::numeric_limits<int64_t>::max()) {
  std::lock_guard lock(descriptors());
  g_present = this;
}

SamplingProcess::~SamplingProcess() {
  end();
  std::lock_guard lock(descriptors());
  g_present = nullptr;
}

void SamplingProcess::forget_after_fork() noexcept {
  if (g_present)
    g_present->close_socket();
  g_present = nullptr;
}

void SamplingProcess::close_socket() noexcept {
  if (int open = std::exchange(socket_, -1); open >= 0)
    close(open);
}

void SamplingProcess::finish(int64_t end_by_ns) noexcept {
  end_by_ns_.store(end_by_ns, std::memory_order_relaxed);
  std::lock_guard lock(descriptors());
  is_finished_ = true;
  if (socket_ >= 0)
    shutdown(socket_, is_in_burst_ ? SHUT_WR : SHUT_RDWR);
}

void SamplingProcess::set_in_burst(bool is_in_burst) noexcept {
  std::lock_guard lock(descriptors());
  is_in_burst_ = is_in_burst;
}

// The calling thread has the lowest priority, and so has what it starts.
void SamplingProcess::start() {
  std::lock_guard lock(descriptors());
  if (is_finished_)
    throw Error(ErrorCode::kUnavailable, kWhat + std::string("is not needed any more"));
  ++starts_;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    refuse("did not start", errno);
  socket_ = ends[0];
  int theirs = free_descriptor(ends[1]);
  int error = theirs < 0 ? EMFILE : 0;
  if (error == 0)
    error = posix_spawn(&process_, options_.process[0].c_str(), SpawnFiles(theirs).get(),
                        SpawnAttributes().get(), pointers(options_.process).data(),
                        pointers(options_.environment).data());
  if (theirs >= 0)
    close(theirs);
  if (error == 0)
    return;
  process_ = 0;
  close_socket();
  refuse("did not start: " + options_.process[0], error);
}

int SamplingProcess::end() noexcept {
  {
    std::lock_guard lock(descriptors());
    close_socket();
    is_in_burst_ = false;
  }
  earlier_ns_ += std::exchange(used_ns_, 0);
  pid_t process = std::exchange(process_, 0);
  if (process <= 0 || !is_ours(process))
    return -1;
  kill(process, SIGKILL); // changes nothing for one that is ending
  int status = -1;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void SamplingProcess::fail(bool is_late) {
  int status = end();
  std::string why = "ended";
  if (is_late)
    why = "did not answer in time";
  else if (status >= 0 && WIFSIGNALED(status))
    why = "was ended by signal " + std::to_string(WTERMSIG(status));
  else if (status >= 0)
    why = "ended with code " + std::to_string(WEXITSTATUS(status)) +
          "; to see why, run: " + join(options_.process) + " < /dev/null";
  throw Error(ErrorCode::kUnavailable, kWhat + why);
}

void SamplingProcess::transfer(void *data, size_t bytes, bool is_out) {
  auto *at = static_cast<char *>(data);
  while (bytes > 0) {
    if (monotonic_ns() >= std::min(deadline_ns_, end_by_ns_.load(std::memory_order_relaxed)))
      fail(true);
    pollfd ready{socket_, static_cast<short>(is_out ? POLLOUT : POLLIN), 0};
    if (poll(&ready, 1, kBetweenLooksMs) <= 0)
      continue;
    // No SIGPIPE: the process may be dead.
    ssize_t done = is_out ? send(socket_, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                          : recv(socket_, at, bytes, MSG_DONTWAIT);
    bool is_again = done < 0 && (errno == EAGAIN || errno == EINTR);
    if (is_again)
      continue;
    if (done <= 0)
      fail(false);
    at += done;
    bytes -= static_cast<size_t>(done);
  }
}

template <typename T> void SamplingProcess::receive(std::vector<T> &values, size_t count) {
  values.resize(count);
  transfer(values.data(), count * sizeof(T), false);
}

CounterSamples SamplingProcess::open(const std::string &uuid,
                                     const std::vector<std::vector<std::string>> &sets) {
  return ask(uuid, sets, true);
}

CounterSamples SamplingProcess::sample(const std::string &uuid,
                                       const std::vector<std::string> &metrics) {
  return ask(uuid, {metrics}, false);
}

CounterSamples SamplingProcess::ask(const std::string &uuid,
                                    const std::vector<std::vector<std::string>> &sets,
                                    bool is_opening) {
  deadline_ns_ = monotonic_ns() + int64_t{options_.answer_ms} * 1'000'000;
  if (process_ <= 0)
    start();
  std::string text = text_of(library_, uuid, sets);
  SamplingRequest request{text.size(), options_.hardware_bytes, options_.interval_ns,
                          options_.burst_ms, is_opening ? 1u : 0u};
  transfer(&request, sizeof request, true);
  transfer(text.data(), text.size(), true);
  set_in_burst(!is_opening);
  SamplingAnswer answer;
  transfer(&answer, sizeof answer, false);
  used_ns_ = answer.process_ns;
  if (answer.text_bytes > kMostTextBytes || answer.samples > kMostAnswered)
    fail(false);
  std::string said(answer.text_bytes, '\0');
  transfer(said.data(), said.size(), false);
  if (answer.has_failed != 0) {
    set_in_burst(false);
    throw Error(ErrorCode::kUnavailable, said);
  }
  CounterSamples found;
  found.metrics = split_words(said);
  found.lost = answer.lost;
  found.is_image_full = answer.is_image_full != 0;
  found.is_buffer_full = answer.is_buffer_full != 0;
  found.open_ns = answer.open_ns;
  found.decode_ns = answer.decode_ns;
  found.info_ns = answer.info_ns;
  found.evaluate_ns = answer.evaluate_ns;
  receive(found.start_ns, answer.samples);
  receive(found.end_ns, answer.samples);
  receive(found.values, answer.samples * found.metrics.size());
  set_in_burst(false);
  return found;
}

} // namespace proton
