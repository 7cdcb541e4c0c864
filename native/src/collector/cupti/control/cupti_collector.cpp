#include "collector/cupti/control/cupti_collector.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <optional>

#include "collector/cupti/activity/activity_stream.h"
#include "collector/cupti/callbacks/graph_source.h"
#include "collector/cupti/callbacks/launch_source.h"
#include "collector/cupti/callbacks/nvtx_source.h"
#include "collector/cupti/control/subscription.h"
#include "collector/cupti/counters/counter_sampler.h"
#include "collector/cupti/pc_sampling/pc_sources.h"
#include "collector/gpu/devices/device_facts.h"
#include "collector/gpu/launches/launch_thread.h"
#include "collector/gpu/records/delivery.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"
#include "driver/cuda/cuda_driver.h"
#include "support/error.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

// NVIDIA's driver as the source of facts about devices.

class CudaDevices : public DeviceSource {
public:
  explicit CudaDevices(const CudaDriver &driver) : driver_(driver) {}
  DeviceDescription describe(int32_t device) const override;

private:
  const CudaDriver &driver_;
};

DeviceDescription CudaDevices::describe(int32_t device) const {
  CudaDeviceFacts facts = driver_.device(device);
  DeviceDescription described;
  described.name = facts.name;
  described.uuid = facts.uuid;
  Device &known = described.device;
  known.kind = "CUDA";
  known.index = device;
  known.arch = facts.capability == 0 ? "" : std::to_string(facts.capability);
  known.num_sms = facts.multiprocessors;
  known.clock_rate_khz = facts.clock_rate_khz;
  known.memory_clock_rate_khz = facts.memory_clock_rate_khz;
  known.bus_width_bits = facts.bus_width_bits;
  return described;
}

constexpr uint32_t kOpenCallbacksMs = 100; // for calls whose ends are no longer reported

std::atomic<bool> g_is_forked{false};

/// Everything that callbacks may use at any time: made once, never destroyed.
struct Engine {
  explicit Engine(RecordSink &to)
      : sink(to), launches(to, ids), launch_source(launches, KernelCodes::instance()),
        copy_source(launches), resource_source(launches), module_source(KernelCodes::instance()),
        graphs(to.graphs()), graph_calls(launches, graphs), graph_changes(to.graphs(), graphs),
        stream(to, launches), kernel_reader(context()), copy_reader(context()),
        graph_reader(context()), sampler(to, launches.contexts()),
        sampled_resources(sampler, resource_source, module_source),
        sampled_launches(sampler, launch_source, graph_calls), counters(to, launches.contexts()) {
    stream.readers().add(kernel_reader);
    stream.readers().add(copy_reader);
    stream.readers().add(graph_reader);
  }
  ReadingContext context() { return {ids, launches, stream.timebase(), devices}; }

  RecordSink &sink;
  std::mutex mutex; ///< of start and stop, and of what follows
  std::optional<CuptiLibrary> library;
  std::optional<CudaDriver> driver;
  std::optional<CudaDevices> cuda_devices;
  std::unique_ptr<Subscription> subscription;
  bool was_used = false; ///< CUPTI, and it has not been detached since

  CorrelationIds ids;
  LaunchLog launches;
  LaunchSource launch_source;
  CopySource copy_source;
  ResourceSource resource_source;
  ModuleSource module_source;
  GraphTable graphs;
  GraphCallSource graph_calls;
  GraphChangeSource graph_changes;
  NvtxSource nvtx_source;
  CallbackTable callbacks;
  ActivityStream stream;
  DeviceFacts devices;
  KernelReader kernel_reader;
  CopyReader copy_reader;
  GraphReader graph_reader;
  PcSampler sampler;
  PcResourceSource sampled_resources;
  PcCallSource sampled_calls;
  PcLaunchSource sampled_launches;
  CounterSampler counters;
};

Engine &engine(RecordSink &sink) {
  static Engine *instance = [&] {
    pthread_atfork(nullptr, nullptr, [] {
      g_is_forked.store(true);
      set_open_capture(nullptr); // its locks are the parent's
      forget_captures_after_fork();
      set_scope_border(nullptr); // same
      PcSampler::forget_after_fork();
      CounterSampler::forget_after_fork();
    });
    return new Engine(sink);
  }();
  return *instance;
}

void load(Engine &self, const CuptiOptions &options) {
  if (!self.driver) {
    self.driver = CudaDriver::open();
    self.cuda_devices.emplace(*self.driver);
  }
  if (!self.library)
    self.library = CuptiLibrary::open(options.candidates);
  self.devices.set_source(&*self.cuda_devices);
  self.stream.set_library(&*self.library);
  self.module_source.set_library(&*self.library);
  self.graph_calls.set_library(&*self.library);
  self.graph_changes.set_library(&*self.library);
}

/// Enables callbacks that replace others.
void enable_sampling_callbacks(Engine &self, Subscription &subscription,
                               const CuptiOptions &options) {
  if (options.pc_sampling.mode == PcSamplingMode::kOff)
    return;
  subscription.enable(self.callbacks, self.sampled_resources);
  subscription.enable(self.callbacks, self.sampled_calls);
  if (options.pc_sampling.mode == PcSamplingMode::kLaunch)
    subscription.enable(self.callbacks, self.sampled_launches);
}

/// The steps of a start. If one of them throws, what was switched on is switched off.
std::unique_ptr<Subscription> subscribe(Engine &self, const CuptiOptions &options) {
  const CuptiLibrary &library = *self.library;
  auto subscription = std::make_unique<Subscription>(library);
  forget_open_calls(); // they ended while no callbacks came
  subscription->subscribe(self.callbacks);
  // Samples of counters have the vendor's time, so records need it too.
  bool counts = !options.counters.sets.empty();
  self.stream.timebase().start(library, options.vendor_clock || counts);
  self.stream.pool().prepare(options.buffer_bytes);
  self.stream.make_current();
  library.check(library.functions().activity_register_callbacks(ActivityStream::requested,
                                                                ActivityStream::completed),
                "cuptiActivityRegisterCallbacks");
  subscription->set_flush_period(options.flush_period_ms);
  if (options.hardware_trace)
    subscription->enable_hardware_trace();
  // Callbacks come before activities, so that the launch of a recorded kernel was seen.
  if (self.sink.graphs().has_device_values()) {
    DeviceWait wait; // launches of the pause have to be over for that
    if (wait.is_allowed())
      self.driver->synchronize_current();
    self.sink.graphs().skip_device_values();
  }
  self.graphs.start(options.whole_graphs);
  self.graph_calls.warn_again();
  subscription->enable(self.callbacks, self.resource_source);
  subscription->enable(self.callbacks, self.module_source);
  subscription->enable(self.callbacks, self.graph_changes);
  subscription->enable(self.callbacks, self.graph_calls);
  if (options.nvtx)
    subscription->enable(self.callbacks, self.nvtx_source);
  subscription->enable(self.callbacks, self.launch_source);
  if (options.copies)
    subscription->enable(self.callbacks, self.copy_source);
  enable_sampling_callbacks(self, *subscription, options);
  subscription->enable(self.kernel_reader);
  // Also without `copies`: a graph's small copy is a kernel of the driver's until CUPTI watches the
  // graph being made. Records of other copies then have no launch.
  subscription->enable(self.copy_reader);
  if (options.whole_graphs)
    subscription->enable(self.graph_reader);
  return subscription;
}

void flush_activities(Engine &self, uint32_t flags) noexcept {
  if (self.library->functions().activity_flush_all(flags) != cupti::kSuccess)
    self.sink.dropped({"failed cuptiActivityFlushAll", 1, true});
}

class CuptiRecords : public RecordSource {
public:
  CuptiRecords(Engine &engine, uint32_t flags) : engine_(engine), flags_(flags) {}
  void wait_for_devices() noexcept override {
    try {
      for (void *context : engine_.launches.contexts().list())
        engine_.driver->synchronize(context); // one that fails has nothing left to wait for
    } catch (...) {                           // no memory: only the records are waited for
    }
  }
  void hand_over_records() noexcept override { flush_activities(engine_, flags_); }
  uint64_t dropped() const noexcept override { return engine_.stream.dropped(); }

private:
  Engine &engine_;
  uint32_t flags_;
};

Delivered deliver(Engine &self, uint32_t flags) {
  CuptiRecords records(self, flags);
  return deliver(self.sink, records);
}

/// CUPTI never learns of modules that are loaded while it records nothing, and samples of their
/// kernels then have no PC. It looks at all modules again after it was detached. Throws
/// Error(kUnavailable) if another profiler subscribed since, because that one would be detached
/// too.
void forget_earlier_use(Engine &self) {
  DeviceWait wait;
  if (!self.was_used || !self.library->functions().finalize || !wait.is_allowed())
    return;
  Subscription(*self.library).subscribe(self.callbacks); // and off again
  for (void *context : self.driver->contexts())
    self.driver->synchronize(context);
  if (self.library->functions().finalize() != cupti::kSuccess)
    self.sink.dropped({"failed cuptiFinalize: kernels loaded lately have no PC samples", 1, true});
  self.graphs.forget_all(); // later ids may be any
  self.was_used = false;
}

/// Call after kernel activity is enabled: the other order does not work.
void start_sampling(Engine &self, const CuptiOptions &options) {
  if (options.pc_sampling.mode != PcSamplingMode::kOff)
    self.sampler.start(*self.library, *self.driver, options.pc_sampling,
                       [&self] { deliver(self, 0); });
}

} // namespace

CuptiCollector::~CuptiCollector() {
  if (g_is_forked.load())
    return;
  if (is_running_)
    stop();
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  if (!self.subscription) // else another one runs
    self.graphs.forget_all();
}

void CuptiCollector::start(void *stream) {
  if (g_is_forked.load())
    throw Error(ErrorCode::kUnavailable,
                "CUPTI does not work in a child that was forked while its parent was profiled; "
                "start the child by spawn or exec");
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  if (self.subscription)
    throw Error(ErrorCode::kUnavailable, "the cupti collector runs already; stop it first");
  load(self, options_);
  if (void *graph = nullptr; stream && self.driver->is_captured(stream, graph))
    self.graph_calls.note_capture(stream, graph);
  TickClock::calibrate(); // launches are stamped with it
  if (options_.pc_sampling.mode != PcSamplingMode::kOff)
    forget_earlier_use(self);
  self.was_used = true;
  try {
    self.subscription = subscribe(self, options_);
    start_sampling(self, options_);
  } catch (...) {
    self.subscription.reset();
    self.graphs.suspend();
    self.stream.timebase().stop(*self.library);
    throw;
  }
  self.launches.arm();
  is_running_ = true;
}

void CuptiCollector::start_counters(int socket) {
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  self.counters.start(self.library->path(), *self.driver, options_.counters, socket);
}

void CuptiCollector::flush() {
  if (!is_running_ || g_is_forked.load())
    return;
  Engine &self = engine(sink_);
  Delivered delivered = deliver(self, 0);
  if (options_.pc_sampling.mode != PcSamplingMode::kOff)
    self.sampler.flush();
  if (!delivered.is_waited)
    return; // what has no record yet may still run: a later flush settles it
  uint64_t dropped = self.stream.take_dropped();
  self.sink.settled({CorrelationIds::kFirst, delivered.newest, dropped != 0, dropped});
}

void CuptiCollector::stop() {
  if (!is_running_)
    return;
  is_running_ = false;
  if (g_is_forked.load())
    return; // CUPTI's threads and locks belong to the parent
  Engine &self = engine(sink_);
  self.counters.stop(); // the kernels of its last burst follow
  std::lock_guard lock(self.mutex);
  deliver(self, cupti::kFlushForced);
  uint64_t failed = options_.pc_sampling.mode == PcSamplingMode::kOff ? 0 : self.sampler.stop();
  self.launches.disarm();
  failed += self.subscription->disable_activities();
  flush_activities(self, cupti::kFlushForced);
  failed += self.subscription->unsubscribe();
  self.subscription.reset();
  wait_for_open_calls(kOpenCallbacksMs);
  self.stream.timebase().stop(*self.library);
  if (options_.finalizes && self.library->functions().finalize) {
    failed += self.library->functions().finalize() == cupti::kSuccess ? 0 : 1;
    self.was_used = false;
  }
  self.launches.contexts().forget_all();
  if (options_.finalizes)
    self.graphs.forget_all(); // later ids may be any
  else
    self.graphs.suspend();
  self.sink.settled(
      {CorrelationIds::kFirst, CorrelationIds::kLast, true, self.stream.take_dropped()});
  if (failed != 0)
    self.sink.dropped({"failed call while CUPTI was switched off", failed, true});
}

void CuptiCollector::add_cubin(const std::string &image) {
  if (is_running_ && !g_is_forked.load())
    engine(sink_).sampler.add_cubin(image.data(), image.size());
}

CuptiFacts CuptiCollector::facts() const {
  CuptiFacts facts;
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  if (!self.library || !self.driver)
    return facts;
  facts.library = self.library->path();
  facts.origin = self.library->origin();
  facts.version = cupti_release(self.library->version());
  facts.driver = self.driver->version();
  facts.clock = self.stream.timebase().converts() ? "vendor" : "monotonic";
  facts.clock_drift_ns = self.stream.timebase().drift_ns();
  facts.devices = self.devices.list();
  facts.foreign_buffers = self.stream.foreign_buffers();
  if (options_.pc_sampling.mode != PcSamplingMode::kOff)
    facts.pc_sampling = self.sampler.facts();
  if (!options_.counters.sets.empty())
    facts.counters = self.counters.facts();
  facts.taken_buffers = self.subscription ? 0 : self.stream.pool().outstanding();
  return facts;
}

} // namespace proton
