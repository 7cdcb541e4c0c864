#include "collector/cupti/counters/counter_sampler.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <exception>
#include <utility>

#include "driver/own_work.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr int kNiceness = 19;           // the target's threads come first
constexpr int64_t kShareOfCore = 8;     // the thread takes one part in so many
constexpr int64_t kLookNs = 20'000'000; // until something is launched
constexpr uint32_t kMostFailures = 3;   // bursts of a device, one after the other
constexpr int64_t kLongestPauseNs = int64_t{60} * 1'000'000'000;

int64_t thread_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool read_clock(const void *library, uint64_t &time_ns) noexcept {
  const auto &cupti = static_cast<const CuptiLibrary *>(library)->functions();
  return cupti.get_timestamp(&time_ns) == cupti::kSuccess;
}

} // namespace

void CounterSampler::start(const CuptiLibrary &library, const CudaDriver &driver,
                           CounterOptions options) {
  stop();
  library_ = &library;
  driver_ = &driver;
  options_ = std::move(options);
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
  thread_->join();
  thread_.reset();
}

CounterFacts CounterSampler::facts() const {
  std::lock_guard lock(mutex_);
  return facts_;
}

bool CounterSampler::wait(int64_t pause_ns) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::nanoseconds(pause_ns), [&] { return is_ending_; });
}

void CounterSampler::run() noexcept {
  setpriority(PRIO_PROCESS, 0, kNiceness); // on Linux that is the calling thread
  OwnWork own;
  try {
    int64_t pause_ns = prepare() ? kLookNs : kLongestPauseNs;
    while (wait(pause_ns)) {
      int64_t before_ns = thread_time_ns();
      if (cupti_)
        find_devices();
      if (!devices_.empty())
        take_burst();
      pause_ns = next_pause_ns(thread_time_ns() - before_ns);
    }
  } catch (const std::exception &) { // no memory
    std::lock_guard lock(mutex_);
    if (facts_.error.empty())
      facts_.error = "no memory for counters";
  }
  devices_.clear();
  cupti_.reset();
  metrics_.reset();
  known_.clear();
  looked_at_.clear();
  failures_.clear();
  std::lock_guard lock(mutex_);
  facts_.thread_ns = thread_time_ns();
}

int64_t CounterSampler::next_pause_ns(int64_t work_ns) const {
  if (!cupti_)
    return kLongestPauseNs;
  std::lock_guard lock(mutex_);
  if (devices_.empty())
    return known_.empty() ? kLookNs : facts_.pause_ns;
  int64_t share_ns = facts_.pause_ns / static_cast<int64_t>(devices_.size());
  return std::min(std::max(share_ns, work_ns * (kShareOfCore - 1)), kLongestPauseNs);
}

bool CounterSampler::prepare() noexcept {
  try {
    cupti_ = CuptiPmSampling::of(*library_);
    initialize_counters(*library_);
    clock_.start(read_clock, library_);
    return true;
  } catch (const std::exception &error) {
    cupti_.reset();
    std::lock_guard lock(mutex_);
    facts_.error = error.what();
    return false;
  }
}

void CounterSampler::find_devices() {
  for (void *context : contexts_.list()) {
    if (!looked_at_.insert(context).second)
      continue;
    int device = driver_->device_of(context);
    if (device >= 0 && known_.insert(device).second)
      open(device);
  }
}

void CounterSampler::open(int32_t device) {
  int64_t before_ns = monotonic_ns();
  try {
    devices_.push_back(std::make_unique<PmDevice>(*library_, *cupti_, device, options_));
  } catch (const Error &error) {
    refuse(device, error.what());
    return;
  }
  if (!metrics_) { // those of the others, so that a session has one list
    metrics_ = std::make_shared<const std::vector<std::string>>(devices_.back()->metrics());
    options_.sets = {*metrics_};
  }
  std::lock_guard lock(mutex_);
  facts_.open_ns += monotonic_ns() - before_ns;
  facts_.metrics = *metrics_;
  facts_.devices.push_back(device);
}

void CounterSampler::refuse(int32_t, const char *why) {
  std::lock_guard lock(mutex_);
  ++facts_.refused_devices;
  if (facts_.error.empty())
    facts_.error = why;
}

void CounterSampler::lose_burst(const PmDevice &device, const char *call, cupti::Result result) {
  std::string why;
  try {
    library_->check(result, call);
  } catch (const Error &error) {
    why = error.what();
  }
  bool is_hopeless = ++failures_[device.device()] >= kMostFailures;
  {
    std::lock_guard lock(mutex_);
    ++facts_.lost_bursts;
    if (facts_.error.empty())
      facts_.error = why;
    if (is_hopeless) {
      std::erase(facts_.devices, device.device());
      ++facts_.refused_devices;
    }
  }
  if (is_hopeless)
    std::erase_if(devices_, [&](const auto &each) { return each.get() == &device; });
}

void CounterSampler::take_burst() {
  PmDevice &device = *devices_[turn_++ % devices_.size()];
  clock_.observe();
  uint64_t now_ns = 0;
  if (!read_clock(library_, now_ns))
    return;
  int32_t number = device.device();
  sink_.begin_burst("CUDA", number, clock_.monotonic(static_cast<int64_t>(now_ns)));
  std::optional<PmSamples> samples = sample(device); // may give the device up
  if (samples) {
    note(*samples);
    deliver(device, *samples);
    return;
  }
  auto none = std::make_shared<CounterBurst>();
  none->device_index = number;
  sink_.complete(std::shared_ptr<const CounterBurst>(std::move(none)));
}

std::optional<PmSamples> CounterSampler::sample(PmDevice &device) {
  if (cupti::Result result = device.start(); result != cupti::kSuccess) {
    lose_burst(device, "cuptiPmSamplingStart", result);
    return std::nullopt;
  }
  wait(int64_t{options_.burst_ms} * 1'000'000);
  if (cupti::Result result = device.stop(); result != cupti::kSuccess) {
    lose_burst(device, "cuptiPmSamplingStop", result);
    return std::nullopt;
  }
  PmSamples samples = device.decode();
  if (samples.error != cupti::kSuccess && samples.start_ns.empty()) {
    lose_burst(device, "cuptiPmSamplingDecodeData", samples.error);
    return std::nullopt;
  }
  failures_[device.device()] = 0;
  return samples;
}

void CounterSampler::note(const PmSamples &samples) {
  std::lock_guard lock(mutex_);
  facts_.bursts += samples.start_ns.empty() ? 0 : 1;
  facts_.samples += samples.start_ns.size();
  for (size_t i = 0; i < samples.start_ns.size(); ++i)
    facts_.covered_ns += static_cast<int64_t>(samples.end_ns[i] - samples.start_ns[i]);
  facts_.lost_samples += samples.lost;
  facts_.full_images += samples.is_image_full ? 1 : 0;
  facts_.full_buffers += samples.is_buffer_full ? 1 : 0;
  facts_.thread_ns = thread_time_ns();
}

void CounterSampler::deliver(const PmDevice &device, const PmSamples &samples) {
  auto burst = std::make_shared<CounterBurst>();
  burst->device_index = device.device();
  burst->metrics = metrics_;
  for (uint64_t time_ns : samples.start_ns)
    burst->start_ns.push_back(clock_.monotonic(static_cast<int64_t>(time_ns)));
  for (uint64_t time_ns : samples.end_ns)
    burst->end_ns.push_back(clock_.monotonic(static_cast<int64_t>(time_ns)));
  burst->counts = samples.values;
  if (!sink_.complete(std::shared_ptr<const CounterBurst>(std::move(burst))))
    return;
  std::lock_guard lock(mutex_); // the others are as far from each other as those to come
  facts_.pause_ns = std::min(facts_.pause_ns * 2, kLongestPauseNs);
}

} // namespace proton
