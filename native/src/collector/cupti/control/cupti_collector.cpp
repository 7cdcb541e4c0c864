#include "collector/cupti/control/cupti_collector.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collector/cupti/activity/activity_stream.h"
#include "collector/cupti/callbacks/callbacks.h"
#include "collector/cupti/callbacks/graph_source.h"
#include "collector/cupti/callbacks/nvtx_source.h"
#include "collector/cupti/counters/counter_sampler.h"
#include "collector/cupti/pc_sampling/pc_sampler.h"
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

extern "C" void proton_bench_cupti_callback(void *table, int domain, uint32_t cbid,
                                            const void *data) {
  if (data)
    static_cast<const CallbackTable *>(table)->dispatch(domain, cbid, data);
}

/// A subscriber of CUPTI with its callbacks and activities. A step that fails undoes those before.
class Subscription {
public:
  Subscription(const CuptiLibrary &library, CallbackTable &table, ActivityStream &stream)
      : library_(library), table_(table), stream_(stream) {}
  ~Subscription() {
    disable_activities();
    unsubscribe();
  }
  Subscription(const Subscription &) = delete;
  Subscription &operator=(const Subscription &) = delete;

  /// Each throws Error(kUnavailable).
  void subscribe(const CuptiOptions &options, const CudaDriver &driver);
  void register_buffers();
  /// `may_lack`: a library that does not know some of the ids is good enough.
  void listen(int domain, std::span<const uint32_t> ids, CallbackListener &listener,
              bool may_lack = false);
  void enable(const RecordReader &reader);
  void set_flush_period(uint32_t period_ms);
  /// Throws if the library or the GPU cannot. CUPTI cannot switch it off again.
  void enable_hardware_trace();

  /// Switches activities off, then callbacks; returns how many of the calls failed.
  uint64_t disable_activities() noexcept;
  uint64_t unsubscribe() noexcept;

  /// Other subscribers may come or be there (V2): what is CUPTI's as a whole is left alone.
  bool is_shared() const { return is_shared_; }
  /// The name of the first of them, "" if CUPTI gave none.
  const std::string &other() const { return other_; }

private:
  const CuptiLibrary &library_;
  CallbackTable &table_;
  ActivityStream &stream_;
  void *subscriber_ = nullptr;
  bool is_shared_ = false;
  std::string other_;
  std::vector<int> kinds_;
  bool has_period_ = false;
};

/// What CUPTI gives to its only subscriber, or to all alike; null for nothing.
const char *exclusive_part(const CuptiOptions &options) {
  if (options.pc_sampling.mode != PcSamplingMode::kOff)
    return "PC sampling";
  if (options.whole_graphs)
    return "graph=launch";
  return options.hardware_trace ? "TRITON_ENABLE_HW_TRACE" : nullptr;
}

// V1 and V2 exclude each other, over the whole process. So V1 comes first: torch.profiler, which
// records in our pauses, has it too. V2 is for clients that were there before, or that `shared`
// announces; it was never run on a driver that has it (r610), only on the double. With an older
// driver (580) CUPTI 13.5 subscribes by V2, and then refuses to take buffers.
void Subscription::subscribe(const CuptiOptions &options, const CudaDriver &driver) {
  constexpr int kDriver13_3 = 13030;
  const char *exclusive = exclusive_part(options);
  const bool can_share = !exclusive && library_.has_v2() && driver.version_number() >= kDriver13_3;
  if (options.shared && exclusive)
    throw Error(ErrorCode::kUnavailable,
                std::string(exclusive) + " needs CUPTI for itself: leave out shared=on");
  if (options.shared && !can_share)
    throw Error(ErrorCode::kUnavailable,
                library_.path() + " is of CUDA " + cupti_release(library_.version()) +
                    " and the driver of " + driver.version() +
                    ": shared=on takes 13.3 or later of both (driver r610)");
  void *subscriber = nullptr;
  cupti::Result result = cupti::kErrorMultipleSubscribers;
  if (!options.shared)
    result = library_.functions().subscribe(&subscriber, proton_bench_cupti_callback, &table_);
  if (result == cupti::kErrorMultipleSubscribers && can_share) {
    cupti::Result shared =
        library_.subscribe_v2(subscriber, proton_bench_cupti_callback, &table_, true, other_);
    is_shared_ = shared == cupti::kSuccess;
    if (is_shared_ || options.shared)
      result = shared;
  }
  library_.check(result, options.shared ? "cuptiSubscribe_v2" : "cuptiSubscribe");
  subscriber_ = subscriber;
  stream_.share(is_shared_ ? subscriber : nullptr);
  table_.clear();
}

extern "C" void proton_bench_cupti_requested(uint8_t **buffer, size_t *bytes, size_t *max_records,
                                             const void *) {
  ActivityStream::requested(buffer, bytes, max_records);
}

extern "C" void proton_bench_cupti_completed(uint8_t *buffer, size_t bytes, size_t valid_bytes,
                                             const void *) {
  ActivityStream::completed(nullptr, 0, buffer, bytes, valid_bytes);
}

void Subscription::register_buffers() {
  const CuptiFunctions &cupti = library_.functions();
  library_.check(
      is_shared_
          ? cupti.activity_register_callbacks_v2(subscriber_, proton_bench_cupti_requested,
                                                 proton_bench_cupti_completed)
          : cupti.activity_register_callbacks(ActivityStream::requested, ActivityStream::completed),
      "cuptiActivityRegisterCallbacks");
}

void Subscription::listen(int domain, std::span<const uint32_t> ids, CallbackListener &listener,
                          bool may_lack) {
  for (uint32_t cbid : ids) {
    table_.add(domain, cbid, listener);
    cupti::Result result = library_.functions().enable_callback(1, subscriber_, domain, cbid);
    if (result != cupti::kErrorInvalidParameter || !may_lack)
      library_.check(result, "cuptiEnableCallback");
  }
}

void Subscription::enable(const RecordReader &reader) {
  const CuptiFunctions &cupti = library_.functions();
  for (int kind : reader.kinds()) {
    library_.check(is_shared_ ? cupti.activity_enable_v2(subscriber_, kind, nullptr)
                              : cupti.activity_enable(kind),
                   "cuptiActivityEnable");
    kinds_.push_back(kind);
  }
}

void Subscription::set_flush_period(uint32_t period_ms) {
  if (!library_.functions().activity_flush_period || period_ms == 0 || is_shared_)
    return; // CUPTI decides when full buffers come
  library_.check(library_.functions().activity_flush_period(period_ms), "cuptiActivityFlushPeriod");
  has_period_ = true;
}

void Subscription::enable_hardware_trace() {
  if (!library_.functions().activity_enable_hw_trace)
    throw Error(ErrorCode::kUnavailable,
                "this libcupti has no hardware trace: take one of CUDA 12.8 or newer, or unset "
                "TRITON_ENABLE_HW_TRACE");
  library_.check(library_.functions().activity_enable_hw_trace(1), "cuptiActivityEnableHWTrace");
}

uint64_t Subscription::disable_activities() noexcept {
  const CuptiFunctions &cupti = library_.functions();
  uint64_t failed = 0;
  for (int kind : kinds_) {
    cupti::Result result = is_shared_ ? cupti.activity_disable_v2(subscriber_, kind, nullptr)
                                      : cupti.activity_disable(kind);
    failed += result == cupti::kSuccess ? 0 : 1;
  }
  kinds_.clear();
  if (has_period_)
    failed += cupti.activity_flush_period(0) == cupti::kSuccess ? 0 : 1;
  has_period_ = false;
  return failed;
}

uint64_t Subscription::unsubscribe() noexcept {
  if (!subscriber_)
    return 0;
  stream_.share(nullptr);
  void *subscriber = std::exchange(subscriber_, nullptr);
  return library_.functions().unsubscribe(subscriber) == cupti::kSuccess ? 0 : 1;
}

/// Has the sampler of program counters hear of contexts and modules.
class SampledResources : public CallbackListener {
public:
  static constexpr uint32_t kEvents[] = {cupti::kContextCreated, cupti::kContextDestroyStarting,
                                         cupti::kModuleLoaded, cupti::kModuleUnloadStarting};

  explicit SampledResources(PcSampler &sampler) : sampler_(sampler) {}
  void handle(int, uint32_t cbid, const void *data) noexcept override {
    const auto &resource = *static_cast<const cupti::ResourceData *>(data);
    const auto *module = static_cast<const cupti::ModuleResourceData *>(resource.descriptor);
    if (cbid == cupti::kContextCreated)
      sampler_.context_created(resource.context);
    else if (cbid == cupti::kContextDestroyStarting)
      sampler_.context_ending(resource.context);
    else if (module && cbid == cupti::kModuleLoaded)
      sampler_.module_loaded(resource.context, *module);
    else if (module)
      sampler_.module_ending(resource.context, *module);
  }

private:
  PcSampler &sampler_;
};

/// Driver calls that make and end contexts and modules (cupti::kModuleCalls): CUPTI takes part in
/// them, so they are held back as launches are.
class HeldCalls : public CallbackListener {
public:
  void handle(int, uint32_t, const void *data) noexcept override {
    LaunchThread *thread = this_launch_thread();
    if (!thread)
      return; // no memory: it is not held back
    if (static_cast<const cupti::CallbackData *>(data)->site == cupti::kEnter)
      enter_call(*thread);
    else
      thread->leave();
  }
};

/// Driver calls that launch kernels, or a graph, where each launch is sampled by itself.
class SampledLaunches : public CallbackListener {
public:
  static constexpr uint32_t kGraphCalls[] = {cupti::kCuGraphLaunch, cupti::kCuGraphLaunchPtsz};

  explicit SampledLaunches(PcSampler &sampler) : sampler_(sampler) {}
  void handle(int, uint32_t cbid, const void *data) noexcept override {
    const auto &call = *static_cast<const cupti::CallbackData *>(data);
    bool is_graph = cbid == cupti::kCuGraphLaunch || cbid == cupti::kCuGraphLaunchPtsz;
    if (call.site == cupti::kEnter)
      sampler_.launch_begins(call.context);
    else
      sampler_.launch_ended(call.context, is_graph);
  }

private:
  PcSampler &sampler_;
};

constexpr uint32_t kOpenCallbacksMs = 100; // for calls whose ends are not reported

std::atomic<bool> g_is_forked{false};

/// Everything that callbacks may use at any time: made once, never destroyed.
struct Engine {
  explicit Engine(RecordSink &to)
      : sink(to), launches(to, ids), kernel_calls(launches, KernelCodes::instance()),
        copy_calls(launches), resources(launches, KernelCodes::instance()), graphs(to.graphs()),
        graph_source(launches, to.graphs(), graphs), stream(to, launches), kernel_reader(context()),
        copy_reader(context()), graph_reader(context()), sampler(to, launches.contexts()),
        sampled_resources(sampler), sampled_launches(sampler), counters(to, launches.contexts()) {
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
  std::optional<std::string> shared_with;
  bool was_used = false; ///< CUPTI, and it has not been detached since

  CorrelationIds ids;
  LaunchLog launches;
  KernelCalls kernel_calls;
  CopyCalls copy_calls;
  MemoryCalls memory_calls;
  Resources resources;
  GraphTable graphs;
  GraphSource graph_source;
  NvtxSource nvtx_source;
  CallbackTable callbacks;
  ActivityStream stream;
  DeviceFacts devices;
  KernelReader kernel_reader;
  CopyReader copy_reader;
  GraphReader graph_reader;
  PcSampler sampler;
  SampledResources sampled_resources;
  HeldCalls held_calls;
  SampledLaunches sampled_launches;
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
  self.resources.set_library(&*self.library);
  self.graph_source.set_library(&*self.library);
}

void listen_for_samples(Engine &self, Subscription &to, PcSamplingMode mode) {
  if (mode == PcSamplingMode::kOff)
    return;
  to.listen(cupti::kDomainResource, SampledResources::kEvents, self.sampled_resources);
  to.listen(cupti::kDomainDriver, cupti::kModuleCalls, self.held_calls, true);
  if (mode != PcSamplingMode::kLaunch)
    return;
  to.listen(cupti::kDomainDriver, cupti::kLaunchCalls, self.sampled_launches, true);
  to.listen(cupti::kDomainDriver, SampledLaunches::kGraphCalls, self.sampled_launches, true);
}

void listen(Engine &self, Subscription &to, const CuptiOptions &options) {
  to.listen(cupti::kDomainResource, Resources::kEvents, self.resources);
  to.listen(cupti::kDomainResource, GraphSource::kEvents, self.graph_source, true);
  to.listen(cupti::kDomainDriver, GraphSource::kCalls, self.graph_source, true);
  if (options.nvtx)
    to.listen(cupti::kDomainNvtx, NvtxSource::kCalls, self.nvtx_source, true);
  to.listen(cupti::kDomainDriver, cupti::kLaunchCalls, self.kernel_calls);
  if (options.copies)
    to.listen(cupti::kDomainDriver, cupti::kCopyCalls, self.copy_calls, true);
  for (const cupti::MemoryCall &call : cupti::kMemoryCalls)
    to.listen(cupti::kDomainDriver, std::span(&call.cbid, 1), self.memory_calls, true);
  listen_for_samples(self, to, options.pc_sampling.mode);
}

/// The steps of a start. If one of them throws, what was switched on is switched off.
std::unique_ptr<Subscription> subscribe(Engine &self, const CuptiOptions &options) {
  const CuptiLibrary &library = *self.library;
  auto subscription = std::make_unique<Subscription>(library, self.callbacks, self.stream);
  forget_open_calls(); // they ended while no callbacks came
  subscription->subscribe(options, *self.driver);
  self.shared_with.reset();
  if (subscription->is_shared())
    self.shared_with = subscription->other();
  // Samples of counters have the vendor's time, so records need it too.
  bool counts = !options.counters.sets.empty();
  self.stream.timebase().start(library, options.vendor_clock || counts);
  self.stream.pool().prepare(options.buffer_bytes);
  self.stream.make_current();
  subscription->register_buffers();
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
  listen(self, *subscription, options);
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

/// Takes CUPTI out of the process, where it costs each launch something as long as it is in it.
/// Throws Error(kUnavailable) if another profiler subscribed since, because that one would be
/// detached too.
void detach_cupti(Engine &self, const CuptiOptions &options) {
  DeviceWait wait;
  if (!self.was_used || !self.library->functions().finalize || !wait.is_allowed())
    return;
  {
    Subscription probe(*self.library, self.callbacks, self.stream);
    probe.subscribe(options, *self.driver);
    if (probe.is_shared())
      return; // with others, which would be detached too
  }
  for (void *context : self.driver->contexts())
    self.driver->synchronize(context);
  if (self.library->functions().finalize() != cupti::kSuccess)
    self.sink.dropped({"failed cuptiFinalize", 1, true});
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

void CuptiCollector::start(void *stream, bool warns_again) {
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
    self.graph_source.note_capture(stream, graph);
  if (warns_again)
    self.graph_source.warn_again();
  TickClock::calibrate(); // launches are stamped with it
  // CUPTI never learns of modules that are loaded while it records nothing, and samples of their
  // kernels then have no PC. It looks at all modules again after it was detached.
  if (options_.pc_sampling.mode != PcSamplingMode::kOff)
    detach_cupti(self, options_);
  self.was_used = true;
  try {
    self.subscription = subscribe(self, options_);
    start_sampling(self, options_);
  } catch (...) {
    self.stream.timebase().stop(*self.library);
    self.subscription.reset();
    self.graphs.suspend();
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
  // A flush is one of all clients, and a forced one ends the records of work that still runs.
  const uint32_t flags = self.subscription->is_shared() ? 0 : cupti::kFlushForced;
  deliver(self, flags);
  uint64_t failed = options_.pc_sampling.mode == PcSamplingMode::kOff ? 0 : self.sampler.stop();
  self.launches.disarm();
  failed += self.subscription->disable_activities();
  flush_activities(self, flags);
  self.stream.timebase().stop(*self.library); // reads the clock of the subscriber
  failed += self.subscription->unsubscribe();
  self.subscription.reset();
  wait_for_open_calls(kOpenCallbacksMs);
  self.launches.contexts().forget_all();
  self.graphs.suspend();
  self.sink.settled(
      {CorrelationIds::kFirst, CorrelationIds::kLast, true, self.stream.take_dropped()});
  if (failed != 0)
    self.sink.dropped({"failed call while CUPTI was switched off", failed, true});
}

void CuptiCollector::detach() {
  if (is_running_ || g_is_forked.load())
    return;
  Engine &self = engine(sink_);
  std::lock_guard lock(self.mutex);
  if (!self.subscription && self.library && self.driver)
    detach_cupti(self, options_);
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
  facts.shared_with = self.shared_with;
  facts.foreign_buffers = self.stream.foreign_buffers();
  if (options_.pc_sampling.mode != PcSamplingMode::kOff)
    facts.pc_sampling = self.sampler.facts();
  if (!options_.counters.sets.empty())
    facts.counters = self.counters.facts();
  facts.taken_buffers = self.subscription ? 0 : self.stream.pool().outstanding();
  return facts;
}

} // namespace proton
