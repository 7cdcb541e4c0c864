#include "collector/cupti/pc_sampling/pc_sampler.h"

#include <algorithm>
#include <ctime>
#include <exception>
#include <utility>

#include "collector/cupti/pc_sampling/pc_period.h"
#include "collector/cupti/pc_sampling/sampled_functions.h"
#include "collector/gpu/launches/launch_hold.h"
#include "context/thread/graph_capture.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr uint32_t kStartHoldMs = 1000;
constexpr timespec kUnseenCalls{0, 50'000'000};
constexpr uint32_t kTendHoldMs = 20;
constexpr uint32_t kMostTries = 6; // 64 rounds between two of them
constexpr uint32_t kStopHoldMs = 10'000;

/// Adds the processor time of the calling thread to a sum, while it lives.
class CpuTime {
public:
  explicit CpuTime(int64_t &sum_ns) : sum_ns_(sum_ns), start_ns_(now_ns()) {}
  ~CpuTime() { sum_ns_ += now_ns() - start_ns_; }
  CpuTime(const CpuTime &) = delete;
  CpuTime &operator=(const CpuTime &) = delete;
  static int64_t now_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }

private:
  int64_t &sum_ns_;
  int64_t start_ns_;
};

const char *attribution_of(PcSamplingMode mode) {
  switch (mode) {
  case PcSamplingMode::kScope:
    return "exact by scope";
  case PcSamplingMode::kLaunch:
    return "exact by launch";
  default:
    return "estimated by GPU time";
  }
}

} // namespace

thread_local bool PcSampler::Lock::is_here_ = false;

uint32_t PcSampler::period_for(void *context) const {
  if (options_.period_log2 != 0)
    return options_.period_log2;
  int device = driver_->device_of(context);
  CudaDeviceFacts facts = device < 0 ? CudaDeviceFacts{} : driver_->device(device);
  return automatic_period_log2(facts.multiprocessors, facts.clock_rate_khz);
}

void PcSampler::refuse(void *context, const char *why) noexcept {
  try {
    refused_.insert(context);
    if (facts_.error.empty())
      facts_.error = why;
  } catch (...) { // no memory for it: it is tried again
  }
  ++facts_.refused_contexts;
  sink_.dropped({"context that could not be sampled", 1, true});
}

void PcSampler::adopt(void *context) {
  if (!context || contexts_.contains(context) || refused_.contains(context))
    return;
  auto fresh = std::make_unique<PcContext>(*library_, *cupti_, context);
  PcContext &added = *contexts_.emplace(context, std::move(fresh)).first->second;
  try {
    added.enable(options_, period_for(context), is_continuous(), names_);
  } catch (...) {
    contexts_.erase(context);
    throw;
  }
  facts_.period_cycles = std::max(facts_.period_cycles, uint64_t{1} << added.period_log2());
  ++facts_.contexts;
}

void PcSampler::try_adopt(void *context) noexcept {
  try {
    adopt(context);
  } catch (const std::exception &error) { // an Error, or no memory
    refuse(context, error.what());
  }
}

void PcSampler::adopt_all() {
  std::vector<void *> found = driver_->contexts();
  for (void *context : launching_.list())
    found.push_back(context);
  std::optional<Error> first;
  for (void *context : found) {
    try {
      adopt(context);
    } catch (const Error &error) {
      refuse(context, error.what());
      if (!first)
        first = error;
    }
  }
  if (first && contexts_.empty())
    throw *first;
}

void PcSampler::start(const CuptiLibrary &library, const CudaDriver &driver,
                      const PcSamplingOptions &options, std::function<void()> deliver) {
  std::lock_guard ranges(range_mutex_);
  DeviceWait wait; // switching sampling waits for the device
  LaunchHold hold(kStartHoldMs);
  // Calls that began before the callbacks were enabled are not known.
  nanosleep(&kUnseenCalls, nullptr);
  {
    Lock lock(mutex_);
    library_ = &library;
    driver_ = &driver;
    options_ = options;
    deliver_ = std::move(deliver);
    cupti_ = CuptiPcSampling::of(library);
    facts_ = {};
    facts_.attribution = attribution_of(options.mode);
    facts_.is_automatic = options.period_log2 == 0;
    refused_.clear();
    overrun_.clear();
    counts_.clear();
    of_graphs_.clear();
    failed_ = 0;
    tries_ = pauses_ = 0;
    ++range_serial_;
    is_range_over_ = false;
    open_scopes_ = 0;
    try {
      if (wait.is_allowed() && hold.is_complete()) // else the drain thread does it
        adopt_all();
    } catch (...) { // also no memory
      disable_all();
      throw;
    }
    if (!thread_.start(options.drain_ms, [this] { drain_and_tend(); })) {
      disable_all();
      throw Error(ErrorCode::kUnavailable, "no thread for PC samples: the system gives no more; "
                                           "raise its limits, or leave out mode pcsampling");
    }
    is_running_ = true;
  }
  launching_.set_listener(this);
  sink_.begin_samples();
  samples_launches_ = options.mode == PcSamplingMode::kLaunch;
  if (options.mode == PcSamplingMode::kScope)
    begin_ranges();
}

void PcSampler::note(const PcHarvest &harvest) noexcept {
  facts_.total += harvest.total;
  facts_.dropped += harvest.dropped;
  facts_.of_driver_kernels += harvest.of_driver_kernels;
  if (harvest.dropped != 0)
    sink_.dropped({"PC samples dropped by the hardware", harvest.dropped, true});
  if (harvest.error == cupti::kSuccess)
    return;
  ++failed_;
  sink_.dropped({"failed call for PC samples", 1, true});
  try {
    if (facts_.error.empty())
      facts_.error = library_->describe(harvest.error);
  } catch (...) { // no memory for the text
  }
}

bool PcSampler::lengthen_period(void *context, PcContext &sampled) noexcept {
  uint32_t before = sampled.period_log2();
  bool was_started = sampled.is_started();
  try {
    note(sampled.disable(counts_));
    sampled.enable_longer(options_, was_started, names_);
  } catch (const std::exception &error) { // it is off now
    refuse(context, error.what());
    return false;
  }
  uint32_t doubled = sampled.period_log2() - before;
  facts_.doubled += doubled;
  facts_.period_cycles = std::max(facts_.period_cycles, uint64_t{1} << sampled.period_log2());
  return true;
}

void PcSampler::harvest(void *context) {
  auto found = contexts_.find(context);
  if (found == contexts_.end())
    return;
  PcHarvest harvest = found->second->harvest(counts_);
  note(harvest);
  uint64_t bytes = counts_.bytes() + of_graphs_.bytes();
  for (const auto &[each, sampled] : contexts_)
    bytes += sampled->bytes();
  facts_.most_bytes = std::max(facts_.most_bytes, bytes);
  if (harvest.is_overrun && overrun_.insert(context).second)
    sink_.dropped({"full buffers of PC samples", 1, true});
}

void PcSampler::harvest_all() {
  std::vector<void *> known;
  for (const auto &[context, sampled] : contexts_)
    known.push_back(context);
  for (void *context : known)
    harvest(context);
}

void PcSampler::drain() noexcept {
  try {
    Lock lock(mutex_);
    CpuTime time(facts_.drain_ns);
    if (is_running_)
      harvest_all();
  } catch (...) { // no memory: what CUPTI gave is lost
    sink_.dropped({"no memory for PC samples", 1, true});
  }
}

std::vector<void *> PcSampler::newcomers() const {
  std::vector<void *> unknown = launching_.list();
  std::erase_if(unknown, [this](void *context) {
    return contexts_.contains(context) || refused_.contains(context);
  });
  return unknown;
}

// Launches of other threads wait meanwhile, so this happens only where it must, and seldom where a
// call of the driver takes long.
void PcSampler::tend() {
  if (pauses_ != 0 && --pauses_ != 0)
    return;
  if (std::unique_lock ranges(range_mutex_, std::try_to_lock); ranges && is_range_over_)
    close_range();
  DeviceWait wait;
  {
    Lock lock(mutex_);
    bool is_needed = !overrun_.empty() || (is_continuous() && !newcomers().empty());
    if (!is_running_ || !is_needed || !wait.is_allowed())
      return;
  }
  LaunchHold hold(kTendHoldMs);
  if (!hold.is_complete()) {
    tries_ = std::min(tries_ + 1, kMostTries);
    pauses_ = 1u << tries_;
    return;
  }
  tries_ = 0;
  Lock lock(mutex_);
  CpuTime time(facts_.drain_ns);
  if (!is_running_)
    return;
  for (void *context : is_continuous() ? newcomers() : std::vector<void *>())
    try_adopt(context);
  for (void *context : std::exchange(overrun_, {})) {
    auto found = contexts_.find(context);
    if (found != contexts_.end() && !lengthen_period(context, *found->second))
      contexts_.erase(found);
  }
}

void PcSampler::drain_and_tend() noexcept {
  drain();
  try {
    tend();
  } catch (...) { // no memory: the next round tries again
    sink_.dropped({"no memory for PC samples", 1, true});
  }
}

PcCounts PcSampler::take() {
  Lock lock(mutex_);
  PcCounts taken = std::exchange(counts_, PcCounts());
  if (!of_graphs_.is_empty())
    taken.absorb(std::exchange(of_graphs_, PcCounts()));
  return taken;
}

void PcSampler::publish(PcCounts taken, const Capture *at) {
  if (taken.is_empty())
    return;
  std::lock_guard publishing(publish_mutex_);
  int64_t taken_ns = 0;
  std::optional<CpuTime> time(taken_ns);
  lines_.trim();
  std::map<uint64_t, CubinStore::Cubin> cubins;
  StallNames names;
  {
    Lock lock(mutex_);
    for (const auto &[pc, counts] : taken.counts())
      cubins.try_emplace(pc.of.crc, cubins_.find(pc.of.crc));
    if (counts_.is_empty() && of_graphs_.is_empty()) // else they may yet be asked for
      cubins_.forget_unloaded();
    names = names_;
  }
  SampledFunctions functions(taken, cubins, names, *cupti_, lines_);
  std::vector<PcSampleRecord> records = functions.records();
  for (PcSampleRecord &record : records) {
    if (!at)
      break;
    record.at = *at;
    sink_.complete(record);
  }
  if (!at)
    sink_.complete(std::span<const PcSampleRecord>(records));
  time.reset();
  Lock lock(mutex_);
  facts_.samples += functions.samples();
  facts_.not_issued += functions.not_issued();
  facts_.own += functions.own();
  facts_.without_line += functions.without_line();
  facts_.publish_ns += taken_ns;
}

void PcSampler::flush() noexcept {
  try {
    std::unique_lock range(range_mutex_, std::defer_lock);
    if (samples_launches_)
      range.lock(); // the samples of a launch are its own
    drain();
    PcCounts taken = take();
    if (!taken.is_empty())
      deliver_(); // the launches of what was sampled just now
    publish(std::move(taken), nullptr);
  } catch (...) { // no memory: what was taken is lost
    sink_.dropped({"no memory for PC samples", 1, true});
  }
}

void PcSampler::disable_all() noexcept {
  for (auto &[context, sampled] : contexts_) {
    try {
      note(sampled->disable(counts_));
    } catch (...) { // no memory for the rest
      sink_.dropped({"no memory for PC samples", 1, true});
    }
  }
  contexts_.clear();
}

void PcSampler::abandon_all() noexcept {
  failed_ += contexts_.size();
  if (!contexts_.empty())
    sink_.dropped({"PC sampling of a context left on: a launch or a capture did not end",
                   contexts_.size(), true});
  while (!contexts_.empty())
    abandoned_.insert(contexts_.extract(contexts_.begin()));
}

uint64_t PcSampler::stop() noexcept {
  end_ranges();
  launching_.set_listener(nullptr);
  samples_launches_ = false;
  std::lock_guard ranges(range_mutex_);
  thread_.stop();
  drain();
  {
    DeviceWait wait;
    LaunchHold hold(kStopHoldMs);
    Lock lock(mutex_);
    if (!is_running_)
      return 0;
    is_running_ = false;
    is_range_open_ = is_range_over_ = false;
    open_scopes_ = 0;
    CpuTime time(facts_.drain_ns);
    if (wait.is_allowed() && hold.is_complete())
      disable_all();
    else
      abandon_all();
  }
  try {
    deliver_();
    publish(take(), nullptr);
  } catch (...) { // as in `flush`
    sink_.dropped({"no memory for PC samples", 1, true});
  }
  sink_.end_samples();
  return failed_;
}

PcSamplingFacts PcSampler::facts() const {
  std::lock_guard lock(mutex_);
  PcSamplingFacts facts = facts_;
  facts.cubins = cubins_.size();
  facts.cubin_bytes = cubins_.bytes();
  return facts;
}

} // namespace proton
