#include "collector/cupti/ranges/range_counter.h"

#include <exception>
#include <utility>

#include "collector/gpu/launches/launch_hold.h"
#include "context/python/python_lock.h"
#include "context/thread/graph_capture.h"
#include "context/thread/host_range.h"
#include "driver/own_work.h"
#include "record/counter_burst.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kDevice = "CUDA";
// Counters are switched while no other thread launches: libcupti takes its lock and then the
// driver's, and a launch takes them the other way round.
constexpr uint32_t kHoldMs = 200;
constexpr uint32_t kRangeEndHoldMs = 1000; // then the range ends all the same

/// The launch that the calling thread counts.
struct CountedLaunch {
  bool is_open = false;
  std::optional<DeviceWait> wait; ///< no capture begins meanwhile
};
thread_local CountedLaunch t_counted;
thread_local uint64_t t_scope_serial = 0; ///< of the start that saw the open scope; 0: none

std::atomic<RangeCounter *> g_scoped{nullptr};

} // namespace

void RangeCounter::forget_after_fork() noexcept {
  is_forked_.store(true);
  g_scoped.store(nullptr);
}

template <typename Work> void RangeCounter::guarded(Work work) noexcept {
  try {
    work();
  } catch (const std::exception &error) {
    try {
      std::lock_guard lock(facts_mutex_);
      if (facts_.error.empty())
        facts_.error = error.what();
      ++facts_.not_counted;
    } catch (...) { // no memory for it
    }
  } catch (...) {
  }
}

void RangeCounter::start(const CuptiLibrary &library, const CudaDriver &driver,
                         RangeOptions options, std::function<void()> deliver) {
  {
    std::lock_guard range(range_mutex_);
    cupti_ = CuptiRangeProfiler::of(library);
    library_ = &library;
    driver_ = &driver;
    options_ = std::move(options);
    deliver_ = std::move(deliver);
    refused_.clear();
    open_scopes_ = 0;
    ++serial_;
    is_running_ = true;
    std::lock_guard lock(facts_mutex_);
    facts_ = {};
    facts_.counted = options_.mode == RangeMode::kScope ? "scope" : "launch";
  }
  if (options_.mode == RangeMode::kScope)
    begin_scopes();
  else
    counts_launches_ = true;
}

void RangeCounter::flush() noexcept {
  guarded([&] {
    std::lock_guard range(range_mutex_);
    DeviceWait wait; // libcupti waits for the device
    if (!is_running_ || open_scopes_ != 0 || !wait.is_allowed())
      return;
    LaunchHold hold(kHoldMs);
    if (hold.is_complete()) // else the end does it
      finish_all();
  });
}

void RangeCounter::stop() noexcept {
  counts_launches_ = false;
  end_scopes();
  guarded([&] {
    std::lock_guard range(range_mutex_);
    if (!is_running_)
      return;
    is_running_ = false;
    LaunchHold hold(kRangeEndHoldMs);
    finish_all();
    contexts_.clear();
  });
}

RangeFacts RangeCounter::facts() const {
  std::lock_guard lock(facts_mutex_);
  return facts_;
}

RangeContext *RangeCounter::opened(void *context) {
  auto found = contexts_.find(context);
  if (found != contexts_.end())
    return found->second.get();
  if (!context || refused_.contains(context))
    return nullptr;
  try {
    initialize_counters(*library_); // not before the program started CUDA
    int device = driver_->device_of(context);
    auto made = std::make_unique<RangeContext>(*library_, *cupti_, context, device, options_.sets);
    return contexts_.emplace(context, std::move(made)).first->second.get();
  } catch (const Error &error) {
    refuse(context, error.what());
    return nullptr;
  }
}

bool RangeCounter::push(void *context) {
  RangeContext *counted = opened(context);
  if (!counted)
    return false;
  bool was_started = counted->is_started();
  int64_t now_ns = monotonic_ns();
  cupti::Result result = counted->push();
  if (counted->is_started() && !was_started) // else none would end it
    sink_.begin_burst(kDevice, counted->device(), now_ns);
  if (result != cupti::kSuccess)
    fail(context, result);
  return result == cupti::kSuccess;
}

bool RangeCounter::pop(void *context) {
  auto found = contexts_.find(context);
  if (found == contexts_.end() || !found->second->is_open())
    return false;
  cupti::Result result = found->second->pop();
  if (result != cupti::kSuccess)
    fail(context, result);
  else if (found->second->is_full())
    finish(*found->second);
  return result == cupti::kSuccess;
}

void RangeCounter::finish(RangeContext &counted) {
  if (!counted.is_started())
    return;
  auto burst = std::make_shared<CounterBurst>();
  burst->device_kind = kDevice;
  burst->device_index = counted.device();
  burst->metrics = std::make_shared<const std::vector<std::string>>(counted.metrics());
  CountedRanges ranges = counted.finish();
  {
    std::lock_guard lock(facts_mutex_);
    facts_.metrics = counted.metrics();
    facts_.ranges += ranges.start_ns.size();
    facts_.lost_ranges += ranges.lost;
    if (ranges.error != cupti::kSuccess && facts_.error.empty())
      facts_.error = "ranges were lost: " + library_->describe(ranges.error);
  }
  burst->start_ns = std::move(ranges.start_ns);
  burst->end_ns = std::move(ranges.end_ns);
  burst->counts = std::move(ranges.values);
  sink_.complete(burst);
}

void RangeCounter::finish_all() {
  for (auto &[context, counted] : contexts_)
    finish(*counted);
}

void RangeCounter::refuse(void *context, const char *why) {
  refused_.insert(context);
  std::lock_guard lock(facts_mutex_);
  if (facts_.error.empty())
    facts_.error = why;
}

/// A call failed in the middle: what was counted is handed over, and the context goes on without.
void RangeCounter::fail(void *context, cupti::Result result) {
  std::string why = "counting failed: " + library_->describe(result);
  auto found = contexts_.find(context);
  finish(*found->second);
  contexts_.erase(found);
  refuse(context, why.c_str());
}

void RangeCounter::skip() {
  std::lock_guard lock(facts_mutex_);
  ++facts_.not_counted;
}

void RangeCounter::launch_begins(void *context) noexcept {
  if (!counts_launches_ || t_counted.is_open || is_own_work() || is_forked_)
    return;
  guarded([&] {
    WithoutPythonLock unlocked; // the launch that is counted may need it to end
    std::unique_lock range(range_mutex_);
    t_counted.wait.emplace();
    if (!is_running_ || !t_counted.wait->is_allowed()) {
      skip(); // what is captured does not run now
      return;
    }
    OwnWork own; // what libcupti launches
    driver_->synchronize(context);
    LaunchHold hold(kHoldMs);
    if (!hold.is_complete() || !push(context)) {
      skip();
      return;
    }
    t_counted.is_open = true;
    range.release(); // until the launch is over
  });
  if (!t_counted.is_open)
    t_counted.wait.reset();
}

void RangeCounter::launch_ended(void *context, bool) noexcept {
  if (!t_counted.is_open)
    return;
  t_counted.is_open = false;
  guarded([&] {
    WithoutPythonLock unlocked;
    std::unique_lock range(range_mutex_, std::adopt_lock);
    OwnWork own;
    driver_->synchronize(context);
    LaunchHold hold(kRangeEndHoldMs);
    pop(context);
  });
  t_counted.wait.reset();
}

void RangeCounter::context_ending(void *context) noexcept {
  if (is_forked_)
    return;
  guarded([&] {
    WithoutPythonLock unlocked;
    std::lock_guard range(range_mutex_);
    refused_.erase(context); // the address may recur
    auto found = contexts_.find(context);
    if (found == contexts_.end())
      return;
    LaunchHold hold(kRangeEndHoldMs);
    finish(*found->second);
    contexts_.erase(found);
  });
}

void RangeCounter::begin_scopes() {
  g_scoped.store(this);
  set_scope_border([](bool opens) noexcept {
    if (RangeCounter *self = g_scoped.load())
      self->guarded([&] { opens ? self->scope_begins() : self->scope_ended(); });
  });
}

void RangeCounter::end_scopes() noexcept {
  RangeCounter *self = this;
  if (g_scoped.compare_exchange_strong(self, nullptr))
    set_scope_border(nullptr);
}

void RangeCounter::scope_begins() {
  WithoutPythonLock unlocked;
  std::lock_guard range(range_mutex_);
  if (!is_running_)
    return;
  t_scope_serial = serial_;
  if (++open_scopes_ != 1)
    return; // another thread's scope is counted with it
  DeviceWait wait;
  if (!wait.is_allowed())
    return skip();
  deliver_();
  OwnWork own;
  LaunchHold hold(kHoldMs);
  if (!hold.is_complete())
    return skip();
  bool is_counted = false;
  for (void *context : launching_.list())
    is_counted |= push(context);
  if (!is_counted)
    skip();
}

void RangeCounter::scope_ended() {
  WithoutPythonLock unlocked;
  std::lock_guard range(range_mutex_);
  if (t_scope_serial != serial_)
    return; // no session counted when the scope was opened
  t_scope_serial = 0;
  if (open_scopes_ == 0 || --open_scopes_ != 0)
    return;
  deliver_(); // waits for the devices
  OwnWork own;
  LaunchHold hold(kRangeEndHoldMs);
  for (void *context : launching_.list())
    pop(context);
}

} // namespace proton
