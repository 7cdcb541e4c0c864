#include "collector/cupti/counters/sampling_process.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "collector/cupti/counters/detached_process.h"
#include "collector/cupti/counters/sampling_service.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr int kBetweenLooksMs = 100; // at the time by which to end
constexpr const char *kNotOurs = "sent what is not an answer";
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
    if (int handle = g_present->let_go(); handle >= 0)
      close(handle);
  g_present = nullptr;
}

bool SamplingProcess::has_socket() const noexcept {
  return socket_ >= 0 && FileIdentity::of(socket_) == identity_;
}

int SamplingProcess::let_go() noexcept {
  bool is_ours = has_socket(); // who closes one of both has closed the other
  int open = std::exchange(socket_, -1), handle = std::exchange(handle_, -1);
  is_in_burst_ = false;
  if (!is_ours)
    return -1;
  close(open);
  return handle;
}

void SamplingProcess::finish(int64_t end_by_ns) noexcept {
  end_by_ns_.store(end_by_ns, std::memory_order_relaxed);
  std::lock_guard lock(descriptors());
  is_finished_ = true;
  if (has_socket())
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
  if (options_.process.empty())
    throw Error(ErrorCode::kUnavailable,
                kWhat + std::string("needs the file of a Python interpreter, and sys.executable "
                                    "of this program is none; record with counters=gpm"));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    refuse("did not start", errno);
  socket_ = move_from_streams(ends[0]);
  DetachedProcess started{socket_ < 0 ? errno : 0, -1};
  identity_ = FileIdentity::of(socket_);
  int theirs = move_from_streams(ends[1]);
  if (theirs < 0)
    started.error = errno;
  if (started.error == 0) {
    std::vector<std::string> command = options_.process;
    command.push_back(std::to_string(getpid())); // for those who look at processes
    started = start_detached(command, options_.environment, theirs);
  }
  if (theirs >= 0)
    close(theirs);
  handle_ = started.handle;
  if (started.error == 0)
    return;
  let_go();
  refuse("did not start: " + options_.process[0], started.error);
}

void SamplingProcess::end() noexcept {
  int handle = -1;
  {
    std::lock_guard lock(descriptors());
    handle = let_go();
  }
  if (handle >= 0) // else it ends because its socket is closed
    end_detached(handle);
  earlier_ns_ += std::exchange(used_ns_, 0);
}

void SamplingProcess::fail(const std::string &why) {
  end();
  throw Error(ErrorCode::kUnavailable, kWhat + why);
}

void SamplingProcess::transfer(void *data, size_t bytes, bool is_out) {
  auto *at = static_cast<char *>(data);
  while (bytes > 0) {
    if (monotonic_ns() >= std::min(deadline_ns_, end_by_ns_.load(std::memory_order_relaxed)))
      fail("did not answer in time");
    pollfd ready{socket_, static_cast<short>(is_out ? POLLOUT : POLLIN), 0};
    if (poll(&ready, 1, kBetweenLooksMs) <= 0)
      continue;
    if (!has_socket())
      fail("was lost when the program closed all its files");
    // No SIGPIPE: the process may be dead.
    ssize_t done = is_out ? send(socket_, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                          : recv(socket_, at, bytes, MSG_DONTWAIT);
    bool is_again = done < 0 && (errno == EAGAIN || errno == EINTR);
    if (is_again)
      continue;
    if (done <= 0)
      fail("ended; to see why, run: " + join(options_.process) + " < /dev/null");
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
  if (!is_running())
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
  if (answer.text_bytes > kMostTextBytes || answer.samples > kMostSamples)
    fail(kNotOurs);
  std::string said(answer.text_bytes, '\0');
  transfer(said.data(), said.size(), false);
  if (answer.has_failed != 0) {
    set_in_burst(false);
    throw Error(ErrorCode::kUnavailable, said);
  }
  CounterSamples found;
  found.metrics = split_words(said);
  if (is_opening ? answer.samples != 0 : found.metrics != sets[0])
    fail(kNotOurs);
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
