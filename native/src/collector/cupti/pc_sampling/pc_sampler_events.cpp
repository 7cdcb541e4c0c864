// What the sampler does when the target makes contexts, loads modules, launches and enters scopes.
#include <atomic>
#include <optional>
#include <utility>

#include "collector/cupti/pc_sampling/pc_sampler.h"
#include "collector/gpu/launches/launch_hold.h"
#include "collector/gpu/launches/launch_thread.h"
#include "context/python/python_lock.h"
#include "context/thread/current.h"
#include "context/thread/graph_capture.h"
#include "context/thread/host_range.h"
#include "driver/own_work.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr uint32_t kEventHoldMs = 200;
constexpr uint32_t kEndHoldMs = 1000;

/// What the calling thread launches just now.
struct SampledLaunch {
  bool is_open = false;
  Capture at;
  std::optional<DeviceWait> wait; ///< its end waits for the device
};
thread_local SampledLaunch t_launch;

thread_local uint64_t t_range_serial = 0; ///< of the sampler when the open scope was reported

std::atomic<PcSampler *> g_ranged{nullptr}; ///< that scopes begin and end ranges of

} // namespace

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

// Sampling is switched on at the first launch of a context: nothing of it is sampled late, and the
// thread has no lock of the driver yet.
void PcSampler::launching_in(void *context) noexcept {
  DeviceWait wait;
  LaunchThread *thread = this_launch_thread();
  if (!wait.is_allowed() || !thread || is_own_work())
    return;        // the drain thread does it afterwards
  thread->leave(); // while it waits, it is held too; else two threads wait for each other
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
    return; // no sampler ran when the scope was opened
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
