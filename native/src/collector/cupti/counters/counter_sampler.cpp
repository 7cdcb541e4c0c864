#include "collector/cupti/counters/counter_sampler.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <limits>
#include <utility>

#include "collector/gpu/launches/launch_hold.h"
#include "context/thread/graph_capture.h"
#include "driver/own_work.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr int64_t kShareOfCore = 8;          // the thread takes one part in so many
constexpr int64_t kCreditNs = 1'000'000'000; // and so much at first, for runs of a few seconds
constexpr int64_t kLookNs = 20'000'000;      // until something is launched
constexpr uint32_t kHoldMs = 50;             // for launches that are open; then a later burst tries
constexpr uint32_t kEndHoldMs = 1000;
constexpr int kMostStops = 10;
constexpr uint32_t kMostFailures = 3; // bursts of a device, one after the other
constexpr const char *kEvaluatedHere =
    "; so the program evaluates its samples itself, and its launches wait meanwhile";
constexpr int64_t kMostEndNs = int64_t{20} * 1'000'000'000; // for values of the last burst
constexpr int64_t kLongestPauseNs = int64_t{60} * 1'000'000'000;

bool read_clock(const void *library, uint64_t &time_ns) noexcept {
  const auto &cupti = static_cast<const CuptiLibrary *>(library)->functions();
  return cupti.get_timestamp(&time_ns) == cupti::kSuccess;
}

/// Adds to the facts how long it lived.
class HeldTime {
public:
  HeldTime(std::mutex &mutex, CounterFacts &facts) : mutex_(mutex), facts_(facts) {}
  ~HeldTime() {
    int64_t held_ns = monotonic_ns() - began_ns_;
    std::lock_guard lock(mutex_);
    facts_.held_ns += held_ns;
    facts_.longest_hold_ns = std::max(facts_.longest_hold_ns, held_ns);
  }
  HeldTime(const HeldTime &) = delete;
  HeldTime &operator=(const HeldTime &) = delete;

private:
  std::mutex &mutex_;
  CounterFacts &facts_;
  int64_t began_ns_ = monotonic_ns();
};

} // namespace

void CounterSampler::start(const CuptiLibrary &library, const CudaDriver &driver,
                           CounterOptions options) {
  stop();
  library_ = &library;
  driver_ = &driver;
  options_ = std::move(options);
  end_by_ns_ = std::numeric_limits<int64_t>::max();
  is_told_ = false;
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
  end_by_ns_ = monotonic_ns() + kMostEndNs;
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
  OwnWork own;
  try {
    decoder_.emplace();
    evaluator_.emplace(options_, library_->path(), end_by_ns_);
    int64_t pause_ns = prepare() ? kLookNs : kLongestPauseNs, began_ns = monotonic_ns();
    int64_t spent_ns = 0; // without the opening of devices, which takes a quarter of a second
    while (wait(pause_ns)) {
      if (cupti_)
        find_devices();
      int64_t before_ns = used_ns();
      if (!devices_.empty())
        take_burst();
      spent_ns += used_ns() - before_ns;
      pause_ns = next_pause_ns(spent_ns, monotonic_ns() - began_ns);
    }
  } catch (const std::exception &) { // no memory, or no thread
    std::lock_guard lock(mutex_);
    if (facts_.error.empty())
      facts_.error = "no memory for counters";
  }
  disable_all();
  {
    std::lock_guard lock(mutex_);
    facts_.thread_ns = thread_ns();
  }
  scheduled_.reset();
  evaluator_.reset();
  decoder_.reset(); // the process would end with the thread that started it
  cupti_.reset();
  metrics_.reset();
  is_initialized_ = false;
  known_.clear();
  looked_at_.clear();
  failures_.clear();
}

int64_t CounterSampler::thread_ns() const {
  return thread_time_ns() + (decoder_ ? decoder_->used_ns() : 0);
}

int64_t CounterSampler::used_ns() const {
  return thread_ns() + (evaluator_ ? evaluator_->used_ns() : 0);
}

template <typename Switch> bool CounterSampler::switch_counters(uint32_t limit_ms, Switch call) {
  DeviceWait wait; // a driver that is asked for such things may end open captures
  if (!wait.is_allowed())
    return false;
  HeldTime held(mutex_, facts_);
  LaunchHold hold(limit_ms);
  if (!hold.is_complete())
    return false;
  call();
  return true;
}

bool CounterSampler::stop(PmDevice &device, cupti::Result &result) {
  for (int tries = 0; tries < kMostStops; ++tries)
    if (switch_counters(kEndHoldMs, [&] { result = device.stop(); }))
      return true;
  return false;
}

void CounterSampler::disable_all() noexcept {
  for (std::unique_ptr<PmDevice> &device : devices_)
    if (!switch_counters(kEndHoldMs, [&] { device->disable(); })) {
      std::lock_guard lock(mutex_);
      ++facts_.lost_bursts;
    }
  devices_.clear();
}

int64_t CounterSampler::next_pause_ns(int64_t spent_ns, int64_t elapsed_ns) const {
  if (!cupti_)
    return kLongestPauseNs;
  std::lock_guard lock(mutex_);
  int64_t share_ns = facts_.pause_ns / static_cast<int64_t>(std::max<size_t>(devices_.size(), 1));
  if (devices_.empty() && known_.empty())
    share_ns = kLookNs;
  int64_t earned_ns = (spent_ns - kCreditNs) * kShareOfCore - elapsed_ns;
  return std::min(std::max(share_ns, earned_ns), kLongestPauseNs);
}

bool CounterSampler::prepare() noexcept {
  try {
    cupti_ = CuptiPmSampling::of(*library_);
    clock_.start(read_clock, library_);
    return true;
  } catch (const std::exception &error) {
    give_up(error.what());
    return false;
  }
}

// Not earlier: libcupti refuses it with "unknown error" before the program started CUDA.
bool CounterSampler::initialize() {
  try {
    bool is_done = switch_counters(kHoldMs, [&] { initialize_counters(*library_); });
    is_initialized_ |= is_done;
    return is_done;
  } catch (const Error &error) {
    give_up(error.what());
    return false;
  }
}

void CounterSampler::give_up(const char *why) {
  cupti_.reset();
  std::lock_guard lock(mutex_);
  facts_.error = why;
}

void CounterSampler::find_devices() {
  std::vector<void *> contexts = contexts_.list();
  if (!contexts.empty() && !is_initialized_ && !initialize())
    return;
  for (void *context : contexts) {
    if (!looked_at_.insert(context).second)
      continue;
    int device = driver_->device_of(context);
    if (device >= 0 && !known_.contains(device)) {
      if (open(device))
        known_.insert(device);
      else
        looked_at_.erase(context);
    }
  }
}

bool CounterSampler::open(int32_t device) {
  int64_t before_ns = monotonic_ns();
  try {
    if (!scheduled_ || scheduled_->device() != device)
      decoder_->run([&] {
        scheduled_ = std::make_unique<PmDevice>(*library_, *cupti_, *evaluator_, device, options_);
      });
    if (!switch_counters(kHoldMs, [&] { scheduled_->enable(options_); }))
      return false;
    devices_.push_back(std::move(scheduled_));
  } catch (const Error &error) {
    scheduled_.reset();
    refuse(error.what());
    return true;
  }
  if (!metrics_) { // those of the others, so that a session has one list
    metrics_ = std::make_shared<const std::vector<std::string>>(devices_.back()->metrics());
    options_.sets = {*metrics_};
  }
  std::lock_guard lock(mutex_);
  facts_.open_ns += monotonic_ns() - before_ns;
  facts_.metrics = *metrics_;
  facts_.devices.push_back(device);
  return true;
}

void CounterSampler::refuse(const char *why) {
  std::lock_guard lock(mutex_);
  ++facts_.refused_devices;
  if (facts_.error.empty())
    facts_.error = why;
}

void CounterSampler::lose_burst(PmDevice &device, const char *call, cupti::Result result) {
  try {
    library_->check(result, call);
  } catch (const Error &error) {
    lose_burst(device, error.what());
  }
}

void CounterSampler::lose_burst(PmDevice &device, const std::string &why) {
  {
    std::lock_guard lock(mutex_);
    ++facts_.lost_bursts;
    if (!evaluator_->is_usable() && !is_told_) {
      facts_.error = why + kEvaluatedHere;
      is_told_ = true;
    } else if (facts_.error.empty()) {
      facts_.error = why;
    }
  }
  if (++failures_[device.device()] >= kMostFailures)
    give_up_device(device);
}

void CounterSampler::give_up_device(PmDevice &device) {
  {
    std::lock_guard lock(mutex_);
    std::erase(facts_.devices, device.device());
    ++facts_.refused_devices;
  }
  switch_counters(kEndHoldMs, [&] { device.disable(); });
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
  cupti::Result result = cupti::kSuccess;
  if (!switch_counters(kHoldMs, [&] { result = device.start(); }))
    return std::nullopt; // the next one may
  if (result != cupti::kSuccess) {
    lose_burst(device, "cuptiPmSamplingStart", result);
    return std::nullopt;
  }
  wait(int64_t{options_.burst_ms} * 1'000'000);
  if (!stop(device, result))
    result = cupti::kErrorNotReady;
  if (result != cupti::kSuccess) {
    lose_burst(device, "cuptiPmSamplingStop", result);
    return std::nullopt;
  }
  PmSamples samples;
  decoder_->run([&] { samples = device.decode(); });
  note_costs(samples);
  if (!samples.error.empty()) {
    lose_burst(device, samples.error);
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
}

void CounterSampler::note_costs(const PmSamples &samples) {
  std::lock_guard lock(mutex_);
  facts_.decode_ns += samples.decode_ns;
  facts_.info_ns += samples.info_ns;
  facts_.evaluate_ns += samples.evaluate_ns;
  facts_.thread_ns = thread_ns();
  facts_.evaluator_ns = evaluator_->used_ns();
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
