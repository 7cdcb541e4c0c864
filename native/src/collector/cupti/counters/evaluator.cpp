#include "collector/cupti/counters/evaluator.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "collector/cupti/counters/evaluation.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr int kFirstFree = 3;        // descriptor of the process: its memory
constexpr int kBetweenLooksMs = 100; // at the time by which to end
constexpr const char *kWhat = "the process that evaluates counters ";

/// Of descriptors: a child that is forked while one is made would keep it.
std::mutex &descriptors() {
  static auto *mutex = [] {
    auto *made = new std::mutex; // outlives threads of the target
    guard_across_fork(*made, LockRank::kEvaluator);
    return made;
  }();
  return *mutex;
}

Evaluator *g_present = nullptr; ///< under the same lock

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

/// What the process has: the socket as its input, the memory, and nothing else of the target.
class SpawnFiles {
public:
  SpawnFiles(int socket, int memory) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    close_inherited();
    posix_spawn_file_actions_adddup2(&actions_, memory, kFirstFree);
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
  int free = fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstFree + 1);
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

} // namespace

Evaluator::Evaluator(const CounterOptions &options, std::string library,
                     const std::atomic<int64_t> &end_by_ns)
    : command_(options.evaluator), environment_(options.environment),
      most_wait_ns_(int64_t{options.answer_ms} * 1'000'000), library_(std::move(library)),
      end_by_ns_(end_by_ns) {
  std::lock_guard lock(descriptors());
  g_present = this;
}

Evaluator::~Evaluator() {
  end();
  for (const SharedBytes &each : shared_)
    munmap(each.data, each.bytes);
  std::lock_guard lock(descriptors());
  close_all();
  g_present = nullptr;
}

void Evaluator::forget_after_fork() noexcept {
  if (g_present)
    g_present->close_all();
  g_present = nullptr;
}

void Evaluator::close_all() noexcept {
  for (int *descriptor : {&socket_, &memory_})
    if (int open = std::exchange(*descriptor, -1); open >= 0)
      close(open);
}

SharedBytes Evaluator::share(size_t bytes) {
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  SharedBytes made{nullptr, bytes, shared_bytes_};
  shared_.reserve(shared_.size() + 1);
  std::lock_guard lock(descriptors());
  if (memory_ < 0)
    memory_ = free_descriptor(memfd_create("proton counters", MFD_CLOEXEC));
  size_t end = made.offset + (bytes + page - 1) / page * page;
  if (memory_ < 0 || ftruncate(memory_, static_cast<off_t>(end)) != 0)
    refuse("has no memory", errno);
  void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_,
                    static_cast<off_t>(made.offset));
  if (data == MAP_FAILED)
    refuse("has no memory", errno);
  madvise(data, bytes, MADV_DONTFORK);
  made.data = static_cast<uint8_t *>(data);
  shared_.push_back(made);
  shared_bytes_ = end;
  return made;
}

// The calling thread has the lowest priority, and so has what it starts.
void Evaluator::start() {
  ++starts_;
  std::lock_guard lock(descriptors());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    refuse("did not start", errno);
  socket_ = ends[0];
  int theirs = free_descriptor(ends[1]);
  int error = theirs < 0 ? EMFILE : 0;
  if (error == 0)
    error = posix_spawn(&process_, command_[0].c_str(), SpawnFiles(theirs, memory_).get(),
                        SpawnAttributes().get(), pointers(command_).data(),
                        pointers(environment_).data());
  if (theirs >= 0)
    close(theirs);
  if (error == 0)
    return;
  process_ = 0;
  close(std::exchange(socket_, -1));
  refuse("did not start: " + command_[0], error);
}

int Evaluator::end() noexcept {
  {
    std::lock_guard lock(descriptors());
    if (socket_ >= 0)
      close(std::exchange(socket_, -1));
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

void Evaluator::give_up() noexcept {
  end();
  starts_ = kMostStarts;
}

void Evaluator::fail(bool is_late) {
  int status = end();
  std::string why = "ended";
  if (is_late)
    why = "did not answer in time";
  else if (status >= 0 && WIFSIGNALED(status))
    why = "was ended by signal " + std::to_string(WTERMSIG(status));
  else if (status >= 0)
    why = "ended with code " + std::to_string(WEXITSTATUS(status)) +
          "; to see why, run: " + join(command_) + " < /dev/null";
  throw Error(ErrorCode::kUnavailable, kWhat + why);
}

void Evaluator::transfer(void *data, size_t bytes, bool is_out) {
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

std::vector<double> Evaluator::evaluate(const SharedBytes &image, const std::string &chip,
                                        const std::vector<std::string> &metrics,
                                        const std::vector<uint64_t> &samples) {
  if (samples.empty())
    return {};
  deadline_ns_ = monotonic_ns() + most_wait_ns_;
  if (process_ <= 0)
    start();
  std::string text = library_ + '\0' + chip + '\0';
  for (const std::string &metric : metrics)
    text += metric + '\0';
  EvaluationRequest request{text.size(), image.offset, image.bytes, samples.size()};
  std::vector<uint64_t> indices = samples;
  transfer(&request, sizeof request, true);
  transfer(text.data(), text.size(), true);
  transfer(indices.data(), indices.size() * sizeof(uint64_t), true);
  EvaluationAnswer answer;
  transfer(&answer, sizeof answer, false);
  used_ns_ = answer.used_ns;
  std::string error(std::min<uint64_t>(answer.error_bytes, 1 << 16), '\0');
  transfer(error.data(), error.size(), false);
  if (!error.empty()) { // another process of the same library would say the same
    give_up();
    throw Error(ErrorCode::kUnavailable, kWhat + ("failed: " + error));
  }
  if (answer.values != samples.size() * metrics.size())
    fail(false);
  std::vector<double> values(answer.values);
  transfer(values.data(), values.size() * sizeof(double), false);
  return values;
}

} // namespace proton
