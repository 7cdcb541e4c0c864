#include "collector/cupti/counters/sampling_process.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "collector/cupti/counters/sampling_service.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr int kBetweenLooksMs = 100; // at the time by which to end
constexpr const char *kForeign = "sent what no burst looks like";

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

SamplingProcess::SamplingProcess(const CounterOptions &options, std::string library, int socket)
    : options_(options), library_(std::move(library)), socket_(socket),
      end_by_ns_(std::numeric_limits<int64_t>::max()) {
  open_socket_.store(socket_);
}

SamplingProcess::~SamplingProcess() {
  if (int open = open_socket_.exchange(-1); open >= 0)
    close(open);
}

void SamplingProcess::forget_after_fork() noexcept {
  if (int open = open_socket_.exchange(-1); open >= 0)
    close(open);
}

void SamplingProcess::finish(int64_t end_by_ns) noexcept {
  end_by_ns_.store(end_by_ns, std::memory_order_relaxed);
  shutdown(socket_, is_in_burst_ ? SHUT_WR : SHUT_RDWR);
}

void SamplingProcess::fail(const char *why) {
  is_running_ = false;
  is_in_burst_ = false;
  shutdown(socket_, SHUT_RDWR); // closed by the destructor: `finish` may use it until then
  throw Error(ErrorCode::kUnavailable,
              std::string("the process that samples counters ") + why + "; try counters=gpm");
}

void SamplingProcess::transfer(void *data, size_t bytes, bool is_out) {
  auto *at = static_cast<char *>(data);
  while (bytes > 0) {
    if (monotonic_ns() >= std::min(deadline_ns_, end_by_ns_.load(std::memory_order_relaxed)))
      fail("did not answer in time");
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
      fail("ended");
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
  return request(uuid, sets, true);
}

CounterSamples SamplingProcess::sample(const std::string &uuid,
                                       const std::vector<std::string> &metrics) {
  return request(uuid, {metrics}, false);
}

CounterSamples SamplingProcess::request(const std::string &uuid,
                                        const std::vector<std::vector<std::string>> &sets,
                                        bool is_opening) {
  deadline_ns_ = monotonic_ns() + int64_t{options_.answer_ms} * 1'000'000;
  std::string text = text_of(library_, uuid, sets);
  SamplingRequest head{text.size(), options_.hardware_bytes, options_.interval_ns,
                       options_.burst_ms, is_opening ? 1u : 0u};
  transfer(&head, sizeof head, true);
  transfer(text.data(), text.size(), true);
  is_in_burst_ = !is_opening;
  SamplingAnswer answer;
  transfer(&answer, sizeof answer, false);
  used_ns_ = answer.process_ns;
  if (answer.text_bytes > kMostTextBytes || answer.samples > kMostSamples)
    fail(kForeign);
  std::string reply(answer.text_bytes, '\0');
  transfer(reply.data(), reply.size(), false);
  if (answer.has_failed != 0) {
    is_in_burst_ = false;
    throw Error(ErrorCode::kUnavailable, reply);
  }
  CounterSamples samples;
  samples.metrics = split_words(reply);
  if (is_opening ? answer.samples != 0 : samples.metrics != sets[0])
    fail(kForeign);
  samples.lost = answer.lost;
  samples.is_image_full = answer.is_image_full != 0;
  samples.is_buffer_full = answer.is_buffer_full != 0;
  samples.open_ns = answer.open_ns;
  samples.decode_ns = answer.decode_ns;
  samples.info_ns = answer.info_ns;
  samples.evaluate_ns = answer.evaluate_ns;
  receive(samples.start_ns, answer.samples);
  receive(samples.end_ns, answer.samples);
  receive(samples.values, answer.samples * samples.metrics.size());
  is_in_burst_ = false;
  return samples;
}

} // namespace proton
