#include "collector/cupti/pc_sampling/pc_sampler.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <exception>
#include <optional>
#include <utility>

#include "collector/cupti/pc_sampling/line_table.h"
#include "collector/cupti/pc_sampling/pc_context.h"
#include "collector/gpu/launches/launch_thread.h"
#include "context/python/python_lock.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"
#include "driver/own_work.h"
#include "support/clock.h"
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
  explicit CpuTime(int64_t &sum_ns) : sum_ns_(sum_ns), start_ns_(thread_cpu_ns()) {}
  ~CpuTime() { sum_ns_ += thread_cpu_ns() - start_ns_; }
  CpuTime(const CpuTime &) = delete;
  CpuTime &operator=(const CpuTime &) = delete;

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

constexpr uint32_t kEventHoldMs = 200;
constexpr uint32_t kEndHoldMs = 1000;

/// What the calling thread launches just now.
struct SampledLaunch {
  bool is_open = false;
  Capture at;
  std::optional<DeviceWait> wait; ///< its end waits for the device
};
thread_local SampledLaunch t_launch;

thread_local uint64_t t_range_serial = 0; ///< of the sampler when the open scope was reported to it

std::atomic<PcSampler *> g_ranged{nullptr}; ///< that scopes begin and end ranges of

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

// A thread that launches meanwhile waits. So this happens only where it must, and seldom where a
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

// The target makes contexts, loads modules, launches and enters scopes.

template <typename Work> void PcSampler::guarded(Work work) noexcept {
  if (Lock::is_here() || is_forked_.load(std::memory_order_relaxed))
    return; // the sampler's own call of CUPTI made the event, or its locks are the parent's
  try {
    work();
  } catch (...) { // no memory, or a lock that cannot be had
    sink_.dropped({"no memory for PC samples", 1, true});
  }
}

void PcSampler::forget_after_fork() noexcept {
  is_forked_.store(true, std::memory_order_relaxed);
  LaunchHold::forget_after_fork();
}

void PcSampler::context_created(void *context) noexcept {
  guarded([&] {
    Lock lock(mutex_);
    refused_.erase(context); // an older one had its address
  });
}

// The first launch of a context is where it can be switched on: nothing of it is sampled late, and
// the thread has no lock of the driver yet.
void PcSampler::launching_in(void *context) noexcept {
  DeviceWait wait;
  LaunchThread *thread = this_launch_thread();
  if (!wait.is_allowed() || !thread || is_own_work())
    return;        // the drain thread does it afterwards
  thread->leave(); // it waits as those that are held; else two of them wait for each other
  guarded([&] {
    LaunchHold hold(kEventHoldMs);
    Lock lock(mutex_);
    if (is_running_ && is_continuous() && hold.is_complete())
      try_adopt(context);
  });
  enter_call(*thread);
}

void PcSampler::context_ending(void *context) noexcept {
  guarded([&] {
    LaunchHold hold(kEventHoldMs);
    Lock lock(mutex_);
    cubins_.unload_all(context);
    refused_.erase(context);
    overrun_.erase(context);
    harvest(context);
    auto found = contexts_.find(context);
    if (found == contexts_.end())
      return;
    if (hold.is_complete()) {
      note(found->second->disable(counts_));
      contexts_.erase(found);
    } else { // its end ends sampling too
      abandoned_.insert(contexts_.extract(found));
    }
  });
}

void PcSampler::module_loaded(void *context, const cupti::ModuleResourceData &module) noexcept {
  guarded([&] {
    cupti::CubinCrcParameters parameters;
    parameters.cubin_size = module.cubin_size;
    parameters.cubin = module.cubin;
    Lock lock(mutex_);
    if (!is_running_ || !module.cubin || cupti_->get_cubin_crc(&parameters) != cupti::kSuccess)
      return; // its samples stay without lines
    cubins_.load(context, module.module_id, parameters.crc, module.cubin, module.cubin_size);
  });
}

void PcSampler::module_ending(void *context, const cupti::ModuleResourceData &module) noexcept {
  guarded([&] {
    Lock lock(mutex_);
    harvest(context);
    cubins_.unload(context, module.module_id);
  });
}

void PcSampler::add_cubin(const char *image, size_t bytes) {
  Lock lock(mutex_);
  if (!cupti_)
    return;
  cupti::CubinCrcParameters parameters;
  parameters.cubin_size = bytes;
  parameters.cubin = image;
  library_->check(cupti_->get_cubin_crc(&parameters), "cuptiGetCubinCrc");
  cubins_.load(nullptr, static_cast<uint32_t>(parameters.crc), parameters.crc, image, bytes);
}

bool PcSampler::can_switch(const LaunchHold &hold) noexcept {
  if (!hold.is_complete())
    sink_.dropped({"PC sampling not switched: a launch of another thread did not end", 1, true});
  return hold.is_complete();
}

bool PcSampler::start_context(void *context) noexcept {
  auto found = contexts_.find(context);
  if (found == contexts_.end())
    return false;
  cupti::Result result = found->second->start();
  if (result == cupti::kSuccess)
    return true;
  PcHarvest failure;
  failure.error = result;
  note(failure);
  return false;
}

void PcSampler::stop_context(void *context) noexcept {
  auto found = contexts_.find(context);
  if (found == contexts_.end())
    return;
  PcHarvest stopped;
  stopped.error = found->second->stop();
  note(stopped);
}

void PcSampler::launch_begins(void *context) noexcept {
  if (!samples_launches_ || t_launch.is_open || is_own_work() || any_capture_open())
    return;
  WithoutPythonLock unlocked; // the launch that has the range may need it to end
  guarded([&] {
    std::unique_lock range(range_mutex_);
    std::optional<DeviceWait> &wait = t_launch.wait;
    wait.emplace();
    if (!wait->is_allowed())
      return;
    driver_->synchronize(context);
    LaunchHold hold(kEventHoldMs);
    Lock lock(mutex_);
    if (!is_running_ || !can_switch(hold))
      return;
    try_adopt(context);
    if (!start_context(context))
      return;
    is_range_open_ = true;
    t_launch.is_open = true;
    t_launch.at = capture_current();
    range.release(); // until the launch is over
  });
  if (!t_launch.is_open)
    t_launch.wait.reset();
}

void PcSampler::launch_ended(void *context, bool is_graph) noexcept {
  if (!t_launch.is_open)
    return;
  t_launch.is_open = false;
  WithoutPythonLock unlocked;
  std::unique_lock range(range_mutex_, std::adopt_lock);
  guarded([&] {
    driver_->synchronize(context);
    PcCounts taken;
    {
      LaunchHold hold(kEndHoldMs);
      Lock lock(mutex_);
      if (can_switch(hold)) // else it goes on to the end of the next one
        stop_context(context);
      is_range_open_ = false;
      harvest(context);
      taken = std::exchange(counts_, PcCounts());
      if (is_graph) // of several kernels, on several paths
        of_graphs_.absorb(taken);
    }
    if (!is_graph)
      publish(std::move(taken), &t_launch.at);
  });
  t_launch.wait.reset();
}

void PcSampler::begin_ranges() {
  g_ranged.store(this);
  set_scope_border([](bool opens) noexcept {
    if (PcSampler *self = g_ranged.load())
      self->guarded([&] { opens ? self->begin_range() : self->end_range(); });
  });
}

void PcSampler::end_ranges() noexcept {
  PcSampler *self = this;
  if (g_ranged.compare_exchange_strong(self, nullptr))
    set_scope_border(nullptr);
}

void PcSampler::begin_range() {
  std::lock_guard range(range_mutex_);
  {
    Lock lock(mutex_);
    if (!is_running_)
      return; // it ended while this thread waited
  }
  t_range_serial = range_serial_;
  if (++open_scopes_ != 1)
    return;
  if (is_range_over_)
    close_range();
  DeviceWait wait;
  if (!wait.is_allowed())
    return;
  deliver_();
  sink_.begin_samples();
  LaunchHold hold(kEventHoldMs);
  Lock lock(mutex_);
  if (!is_running_ || !can_switch(hold))
    return;
  for (void *context : launching_.list())
    try_adopt(context);
  for (auto &[context, sampled] : contexts_)
    is_range_open_ |= start_context(context);
}

void PcSampler::end_range() {
  std::lock_guard range(range_mutex_);
  if (t_range_serial != range_serial_)
    return; // no session listened when the scope was opened
  t_range_serial = 0;
  if (open_scopes_ != 0 && --open_scopes_ == 0)
    close_range();
}

void PcSampler::close_range() {
  {
    DeviceWait wait;
    is_range_over_ = !wait.is_allowed(); // the drain thread does it afterwards
    if (is_range_over_)
      return;
    deliver_();
    LaunchHold hold(kEndHoldMs);
    Lock lock(mutex_);
    if (!is_running_ || !is_range_open_ || !can_switch(hold))
      return;
    for (auto &[context, sampled] : contexts_)
      stop_context(context);
    is_range_open_ = false;
    harvest_all();
  }
  publish(take(), nullptr);
}

} // namespace proton
