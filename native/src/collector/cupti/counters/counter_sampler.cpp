#include "collector/cupti/counters/counter_sampler.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <limits>
#include <utility>

#include "collector/cupti/counters/sampling_service.h"
#include "driver/own_work.h"
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

namespace {

constexpr int kLowestPriority = 19;
constexpr int64_t kShareOfCore = 10;         // it takes one part in so many
constexpr int64_t kCreditNs = 1'000'000'000; // and so much at first, for runs of a few seconds
constexpr int64_t kLookNs = 20'000'000;      // until something is launched
constexpr uint32_t kMostFailures = 3;        // bursts of a device, one after the other
constexpr int64_t kMostEndNs = int64_t{20} * 1'000'000'000; // for samples of the last burst
constexpr int64_t kLongestPauseNs = int64_t{60} * 1'000'000'000;

} // namespace

void CounterSampler::start(const std::string &library, const CudaDriver &driver,
                           CounterOptions options, int socket) {
  stop();
  driver_ = &driver;
  options_ = std::move(options);
  process_.emplace(options_, library, socket);
  {
    std::lock_guard lock(mutex_);
    is_ending_ = false;
    facts_ = {};
    facts_.interval_ns = options_.interval_ns;
    facts_.burst_ms = options_.burst_ms;
    facts_.pause_ns = int64_t{options_.pause_ms} * 1'000'000;
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); // signals are for the target's threads
  try {
    thread_.emplace([this] { run(); });
  } catch (const std::exception &) { // std::system_error, or no memory
    process_.reset();
    std::lock_guard lock(mutex_);
    facts_.error = "the system gives no thread for counters";
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CounterSampler::stop() noexcept {
  if (!thread_)
    return;
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_all();
  process_->finish(monotonic_ns() + kMostEndNs);
  thread_->join();
  thread_.reset();
  process_.reset();
}

CounterFacts CounterSampler::facts() const {
  std::lock_guard lock(mutex_);
  return facts_;
}

bool CounterSampler::wait(int64_t pause_ns) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [&] { return is_ending_; });
}

bool CounterSampler::is_ending() const {
  std::lock_guard lock(mutex_);
  return is_ending_;
}

void CounterSampler::run() noexcept {
  setpriority(PRIO_PROCESS, 0, kLowestPriority); // on Linux that is the calling thread
  OwnWork own;
  try {
    sample_until_stopped();
  } catch (const std::exception &) { // no memory
    refuse("no memory for counters");
  }
  note_costs();
  metrics_.reset();
  devices_.clear();
  known_.clear();
  looked_at_.clear();
}

void CounterSampler::sample_until_stopped() {
  int64_t began_ns = monotonic_ns(), pause_ns = kLookNs;
  int64_t spent_ns = 0; // without the opening of devices
  while (wait(pause_ns)) {
    find_devices();
    int64_t before_ns = used_ns();
    if (!devices_.empty())
      take_burst();
    spent_ns += used_ns() - before_ns;
    pause_ns = next_pause_ns(spent_ns, monotonic_ns() - began_ns);
  }
}

int64_t CounterSampler::used_ns() const { return thread_cpu_ns() + process_->used_ns(); }

int64_t CounterSampler::next_pause_ns(int64_t spent_ns, int64_t elapsed_ns) const {
  if (!process_->is_running())
    return kLongestPauseNs;
  if (devices_.empty() && known_.empty())
    return kLookNs;
  std::lock_guard lock(mutex_);
  int64_t share_ns = facts_.pause_ns / static_cast<int64_t>(std::max<size_t>(devices_.size(), 1));
  int64_t earned_ns = (spent_ns - kCreditNs) * kShareOfCore - elapsed_ns;
  return std::min(std::max(share_ns, earned_ns), kLongestPauseNs);
}

void CounterSampler::find_devices() {
  for (void *context : contexts_.list()) {
    if (!process_->is_running() || !looked_at_.insert(context).second)
      continue;
    int ordinal = driver_->device_of(context);
    if (ordinal < 0 || known_.contains(ordinal))
      continue;
    if (open(ordinal))
      known_.insert(ordinal);
    else
      looked_at_.erase(context);
  }
}

bool CounterSampler::open(int32_t ordinal) {
  Device device{ordinal, driver_->device(ordinal).uuid};
  CounterSamples opened;
  try {
    opened = process_->open(device.uuid, options_.sets);
  } catch (const Error &error) {
    if (is_ending())
      return false;
    refuse(error.what());
    return true;
  }
  devices_.push_back(std::move(device));
  if (!metrics_) { // the others have the same, so that a session has one list
    metrics_ = std::make_shared<const std::vector<std::string>>(std::move(opened.metrics));
    options_.sets = {*metrics_};
  }
  std::lock_guard lock(mutex_);
  facts_.open_ns += opened.open_ns;
  facts_.metrics = *metrics_;
  facts_.devices.push_back(ordinal);
  return true;
}

void CounterSampler::refuse(const char *why) {
  std::lock_guard lock(mutex_);
  ++facts_.refused_devices;
  if (facts_.error.empty())
    facts_.error = why;
}

void CounterSampler::lose_burst(size_t device, const char *why) {
  std::lock_guard lock(mutex_);
  ++facts_.lost_bursts;
  if (facts_.error.empty())
    facts_.error = why;
  ++devices_[device].failures;
  std::erase_if(devices_, [&](const Device &each) {
    if (each.failures < kMostFailures && process_->is_running())
      return false;
    ++facts_.refused_devices;
    std::erase(facts_.devices, each.ordinal);
    return true;
  });
}

void CounterSampler::take_burst() {
  size_t at = turn_++ % devices_.size();
  Device &device = devices_[at];
  sink_.begin_burst("CUDA", device.ordinal, monotonic_ns());
  CounterSamples samples;
  try {
    samples = process_->sample(device.uuid, *metrics_);
    device.failures = 0;
    note(samples);
  } catch (const Error &error) {
    auto none = std::make_shared<CounterBurst>();
    none->device_index = device.ordinal;
    sink_.complete(std::shared_ptr<const CounterBurst>(std::move(none)));
    if (!is_ending())
      lose_burst(at, error.what());
    return;
  }
  deliver(device, std::move(samples));
}

void CounterSampler::note(const CounterSamples &samples) {
  {
    std::lock_guard lock(mutex_);
    facts_.bursts += samples.start_ns.empty() ? 0 : 1;
    facts_.samples += samples.start_ns.size();
    for (size_t i = 0; i < samples.start_ns.size(); ++i)
      facts_.covered_ns += samples.end_ns[i] - samples.start_ns[i];
    facts_.lost_samples += samples.lost;
    facts_.full_images += samples.is_image_full ? 1 : 0;
    facts_.full_buffers += samples.is_buffer_full ? 1 : 0;
    facts_.decode_ns += samples.decode_ns;
    facts_.info_ns += samples.info_ns;
    facts_.evaluate_ns += samples.evaluate_ns;
  }
  note_costs();
}

void CounterSampler::note_costs() {
  std::lock_guard lock(mutex_);
  facts_.thread_ns = thread_cpu_ns();
  facts_.process_ns = process_->used_ns();
}

void CounterSampler::deliver(const Device &device, CounterSamples samples) {
  auto burst = std::make_shared<CounterBurst>();
  burst->device_index = device.ordinal;
  burst->metrics = metrics_;
  burst->start_ns = std::move(samples.start_ns);
  burst->end_ns = std::move(samples.end_ns);
  burst->counts = std::move(samples.values);
  if (!sink_.complete(std::shared_ptr<const CounterBurst>(std::move(burst))))
    return;
  std::lock_guard lock(mutex_); // the others are as far from each other as those to come
  facts_.pause_ns = std::min(facts_.pause_ns * 2, kLongestPauseNs);
}

} // namespace proton
