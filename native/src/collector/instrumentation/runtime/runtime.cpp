#include "collector/instrumentation/runtime/runtime.h"

#include <pthread.h>

#include <new>
#include <utility>

#include "context/thread/current.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kFailedReduction = "launch whose records the device did not reduce";
constexpr const char *kFailedHarvest = "launch whose totals the device did not give back";

std::atomic<uint64_t> g_serial{0};
std::atomic<bool> g_is_forked{false};

constexpr const char *kUnknownFunction = "launch of a kernel without a description";
constexpr size_t kMostEarly = 256;

} // namespace

OpenLaunches &OpenLaunches::of_thread() noexcept {
  static constinit thread_local OpenLaunches launches;
  return launches;
}

InstrumentationRuntime::InstrumentationRuntime(RecordSink &sink, InstrumentationOptions options)
    : sink_(sink), options_(options), serial_(g_serial.fetch_add(1) + 1) {
  static const bool installed =
      pthread_atfork(nullptr, nullptr, [] { g_is_forked.store(true); }) == 0;
  static_cast<void>(installed);
}

InstrumentationRuntime::~InstrumentationRuntime() {
  stop();
  if (g_is_forked.load())
    static_cast<void>(copies_.release()); // its thread is the parent's
}

void InstrumentationRuntime::start() {
  if (g_is_forked.load())
    throw Error(ErrorCode::kUnavailable,
                "scopes inside kernels are not recorded in a child that was forked; start the "
                "child by spawn or exec");
  std::lock_guard lock(mutex_);
  if (is_running_)
    throw Error(ErrorCode::kUnavailable,
                "the instrumentation collector runs already; stop it first");
  if (!work_)
    work_ = std::make_unique<CudaDriver>(CudaDriver::open_for_work());
  places_ = std::make_unique<LaunchPlaces>(*work_);
  if (options_.timeline)
    copies_ = std::make_unique<TimelineCopies>(sink_);
  facts_ = {};
  is_running_ = true;
}

void InstrumentationRuntime::add_kernel(uint64_t function, Kernel kernel) {
  std::lock_guard lock(mutex_);
  const Kernel &known = kernels_[function] = std::move(kernel);
  finish_early(function, known);
}

void InstrumentationRuntime::remove_kernel(uint64_t function) {
  std::lock_guard lock(mutex_);
  kernels_.erase(function);
}

void InstrumentationRuntime::check_size(size_t bytes) const {
  if (bytes > options_.byte_limit)
    throw Error(ErrorCode::kUsage,
                "a launch needs " + std::to_string(bytes) +
                    " bytes for the records of its scopes, more than byte_limit=" +
                    std::to_string(options_.byte_limit) +
                    "; raise byte_limit, launch a smaller grid, or make the buffer smaller "
                    "(buffer_size, or fewer warps by sampling_options)");
  if (bytes >= options_.addressable_bytes)
    throw Error(ErrorCode::kUnavailable,
                "a launch needs " + std::to_string(bytes) +
                    " bytes for the records of its scopes, but the code of this Triton reaches "
                    "only " +
                    std::to_string(options_.addressable_bytes) +
                    "; launch a smaller grid, make the buffer smaller, or use a newer Triton");
}

cuda::DevicePointer InstrumentationRuntime::allocate(size_t bytes, void *stream) {
  check_size(bytes);
  OpenLaunches &open = OpenLaunches::of_thread();
  std::lock_guard lock(mutex_);
  if (!is_running_)
    throw Error(ErrorCode::kUnavailable, "a kernel with records was launched, but the "
                                         "instrumentation collector does not run");
  ContextPlaces &context = places_->current();
  uint64_t capture_id = context.capture_of(stream);
  if (capture_id != 0 && options_.timeline)
    throw Error(ErrorCode::kUnavailable,
                "a timeline of scopes inside kernels cannot be recorded while a CUDA graph is "
                "captured: each launch of the graph would need a buffer of its own; record a tree "
                "(data=\"tree\"), or launch without a graph");
  if (open.is_full()) {
    abandon(open.oldest());
    open.drop_oldest();
  }
  ScratchPool &pool = context.pool(stream, capture_id);
  TimelineLayout layout = layout_of(context.device(), bytes);
  ScratchBuffer &buffer =
      pool.take(options_.timeline ? layout.bytes() : bytes, stream, options_.timeline);
  if (buffer.is_dirty && capture_id == 0)
    buffer.is_dirty =
        context.device().clear(buffer.address, buffer.bytes, stream) != cuda::kSuccess;
  if (options_.timeline) // without them the timeline has no clock
    TimelineCopies::mark(context.device(), {nullptr, {}, layout, buffer.address, stream, 0},
                         layout.before_at());
  open.push({serial_, &pool, &buffer, bytes, stream, capture_id, 0});
  return buffer.address;
}

TimelineLayout InstrumentationRuntime::layout_of(const DeviceContext &device, size_t bytes) const {
  return {bytes, device.processors()};
}

/// Drops a launch that never ended; its kernel may have run nevertheless. [lock held]
void InstrumentationRuntime::abandon(const OpenLaunch &launch) noexcept {
  if (launch.owner != serial_)
    return;
  launch.buffer->is_dirty = true;
  launch.pool->give_back(*launch.buffer);
  ++facts_.abandoned;
}

void InstrumentationRuntime::launched(uint64_t function, void *stream) noexcept {
  OpenLaunches &open = OpenLaunches::of_thread();
  if (open.size() == 0)
    return;
  SessionState now = session_state();
  Capture at = now.active ? capture_current() : Capture{};
  std::lock_guard lock(mutex_);
  if (!is_running_)
    return;
  auto found = kernels_.find(function);
  if (found == kernels_.end())
    return keep_early(function, stream, at);
  if (!found->second)
    return; // it has no records, so the buffer is of a launch around it
  uint32_t position = open.find(serial_, stream, found->second->scratch_bytes);
  if (position == OpenLaunches::kMost)
    return;
  for (; open.size() > position + 1; open.drop_newest())
    abandon(open.newest());
  OpenLaunch launch = open.newest();
  open.drop_newest();
  launch.correlation_id = copies_ ? sink_.scoped() : 0;
  end(launch, found->second, at);
}

/// Queues the reduction of a launch's records and gives its buffer back. [lock held]
void InstrumentationRuntime::end(const OpenLaunch &launch, const Kernel &kernel,
                                 const Capture &at) noexcept {
  launch.buffer->is_dirty = true; // until its reduction is queued
  try {
    if (at.epoch != 0 || kernel->is_private)
      finish(launch, kernel, at);
  } catch (...) { // no memory for totals, on the device or the host
    lose(kFailedReduction, 1);
  }
  launch.pool->give_back(*launch.buffer);
}

/// [lock held]
void InstrumentationRuntime::finish(const OpenLaunch &launch, const Kernel &kernel,
                                    const Capture &at) {
  void *stream = launch.stream;
  if (copies_ && !kernel->is_private) {
    DeviceContext &device = places_->current().device();
    CopiedLaunch copied{kernel,
                        at,
                        layout_of(device, launch.bytes),
                        launch.buffer->address,
                        stream,
                        launch.correlation_id};
    try {
      work_->check(TimelineCopies::mark(device, copied, copied.layout.after_at()), "cuLaunchKernel",
                   "noting the clocks after a launch");
      launch.pool->hand_over(*launch.buffer, stream);
      stream = device.copy_stream();
      copies_->copy(device, copied); // before the reduction, which clears what it has read
    } catch (const Error &) {        // the totals are there nevertheless
      lose(kFailedCopy, 1);
    }
  }
  reduce(launch, kernel, at, stream);
}

/// Queues the reduction on a stream where the records are complete. [lock held]
void InstrumentationRuntime::reduce(const OpenLaunch &launch, const Kernel &kernel,
                                    const Capture &at, void *stream) {
  ContextPlaces &context = places_->current();
  DeviceContext &device = context.device();
  device::ReduceTask task = kernel->task;
  task.buffer = reinterpret_cast<unsigned char *>(launch.buffer->address);
  task.totals =
      reinterpret_cast<unsigned char *>(context.totals().find(kernel, at, launch.capture_id));
  task.programs = static_cast<uint32_t>(launch.bytes / kernel->scratch_bytes);
  device::ReduceShape shape = device::reduce_shape(
      task.scopes, task.segments, task.programs, device.processors(), sizeof(ScopeTotals::buckets));
  task.local_buckets = shape.local_buckets;
  if (device.reduce(task, shape, stream) != cuda::kSuccess) {
    lose(kFailedReduction, 1);
    return;
  }
  facts_.launches += kernel->is_private ? 0 : 1;
  ++context.unread;
  launch.buffer->is_dirty = false;
  // The next launch could take what programs wrote behind their headers for a header of another
  // layout, if some of its programs never run.
  if (device.may_skip_programs())
    launch.buffer->is_dirty =
        device.clear(launch.buffer->address, launch.bytes, stream) != cuda::kSuccess;
}

void InstrumentationRuntime::lose(const char *reason, uint64_t count) noexcept {
  facts_.failed += count;
  sink_.dropped({reason, count, true});
}

/// Waits for the context, unless that would end a capture; returns whether all work is over. A
/// failure shows where totals are read. [flush lock held, not the other; context current]
bool InstrumentationRuntime::synchronize(ContextPlaces &context) noexcept {
  void *copies = nullptr;
  bool is_capturing = false;
  DeviceWait wait;
  {
    std::lock_guard lock(mutex_);
    copies = context.device().made_copy_stream();
    is_capturing = !wait.is_allowed() || context.is_capturing();
  }
  if (!is_capturing && work_->functions().ctx_synchronize() == cuda::kSuccess)
    return true;
  RelaxedCapture relaxed(work_->functions()); // this stream is never captured
  if (copies)
    work_->functions().stream_synchronize(copies);
  return false;
}

/// What was reduced so far. [flush lock held, context current]
std::vector<HarvestedTotals> InstrumentationRuntime::harvest(ContextPlaces &context) noexcept {
  std::vector<HarvestedTotals> harvested;
  std::lock_guard lock(mutex_);
  uint64_t unread = std::exchange(context.unread, 0);
  try {
    context.totals().harvest(harvested);
  } catch (...) {
    lose(kFailedHarvest, unread);
  }
  return harvested;
}

/// Delivers what was reduced so far. [flush lock held]
void InstrumentationRuntime::deliver() noexcept {
  std::vector<ContextPlaces *> contexts;
  {
    std::lock_guard lock(mutex_);
    contexts = places_->list();
  }
  EpochId epoch = session_state().epoch;
  for (ContextPlaces *context : contexts) {
    CurrentContext current(work_->functions(), context->device().context());
    bool is_idle = synchronize(*context);
    if (copies_)
      copies_->drain();
    for (const HarvestedTotals &each : harvest(*context))
      emit(each, context->device().device());
    if (!is_idle)
      continue;
    std::lock_guard lock(mutex_);
    context->free_outgrown();
    // One flush later than needed, for a launch that was given its place in the old epoch.
    context->totals().forget_before(flushed_epoch_);
  }
  flushed_epoch_ = epoch;
}

std::optional<HarvestedTotals> InstrumentationRuntime::take(uint64_t function, void *stream) {
  std::lock_guard flushing(flush_mutex_);
  ContextPlaces *context = nullptr;
  Kernel kernel;
  {
    std::lock_guard lock(mutex_);
    auto found = kernels_.find(function);
    if (!is_running_ || found == kernels_.end())
      return std::nullopt;
    kernel = found->second;
    context = &places_->current();
  }
  RelaxedCapture relaxed(work_->functions());
  work_->check(work_->functions().stream_synchronize(stream), "cuStreamSynchronize",
               "measuring what a record costs");
  std::optional<HarvestedTotals> taken;
  for (HarvestedTotals &each : harvest(*context)) {
    emit(each, context->device().device());
    if (each.kernel == kernel)
      taken = std::move(each);
  }
  return taken;
}

bool InstrumentationRuntime::is_capturing(void *stream) {
  std::lock_guard lock(mutex_);
  return is_running_ && places_->current().capture_of(stream) != 0;
}

void InstrumentationRuntime::emit(const HarvestedTotals &harvested, int device) noexcept {
  const InstrumentedKernel &kernel = *harvested.kernel;
  if (kernel.is_private)
    return;
  CycleRecord record;
  record.at = harvested.at;
  record.kernel = kernel.name.c_str();
  record.device_index = device;
  record.warps = kernel.task.segments;
  record.scopes = kernel.scopes;
  record.totals = &harvested.totals;
  record.scope_totals = harvested.scopes.data();
  sink_.complete(record);
}

void InstrumentationRuntime::flush() {
  if (g_is_forked.load())
    return;
  std::lock_guard flushing(flush_mutex_);
  {
    std::lock_guard lock(mutex_);
    if (!is_running_)
      return;
  }
  deliver();
}

void InstrumentationRuntime::stop() {
  if (g_is_forked.load())
    return; // threads, locks and the device belong to the parent
  std::lock_guard flushing(flush_mutex_);
  {
    std::lock_guard lock(mutex_);
    if (!is_running_)
      return;
    // Launches of other threads may be in progress; their buffers stay.
    OpenLaunches &open = OpenLaunches::of_thread();
    for (; open.size() != 0; open.drop_newest())
      abandon(open.newest());
    abandon_early();
  }
  deliver();
  std::lock_guard lock(mutex_);
  abandon_early(); // of launches that ended while totals were delivered
  release();
  is_running_ = false;
}

/// Frees the devices' memory. A graph may run at any later time, so its memory and code stay for
/// the life of the process. [both locks held]
void InstrumentationRuntime::release() noexcept {
  for (ContextPlaces *context : places_->list()) {
    CurrentContext current(work_->functions(), context->device().context());
    DeviceWait wait;
    bool is_idle = wait.is_allowed() && !context->is_capturing() &&
                   work_->functions().ctx_synchronize() == cuda::kSuccess;
    facts_.graph_bytes += context->graph_bytes();
    if (!current.holds() || !is_idle)
      continue; // what still runs may write to it; a broken context takes its memory along
    bool is_used_by_graphs = context->graph_bytes() != 0;
    context->free_all();
    if (copies_)
      copies_->free_all(context->device());
    if (!is_used_by_graphs)
      context->device().release();
  }
  if (copies_)
    facts_.timeline = copies_->facts();
  copies_.reset();
  places_.reset();
}

InstrumentationFacts InstrumentationRuntime::facts() const {
  std::lock_guard lock(mutex_);
  InstrumentationFacts facts = facts_;
  if (!places_)
    return facts;
  if (copies_)
    facts.timeline = copies_->facts();
  facts.device_bytes = facts.graph_bytes = 0;
  for (const ContextPlaces *context : places_->list()) {
    facts.device_bytes += context->bytes();
    facts.graph_bytes += context->graph_bytes();
  }
  return facts;
}

// Launches that end before their function is known, because another thread is still loading it.

/// Triton gives a function to every thread before it tells that the function was loaded. [lock
/// held]
void InstrumentationRuntime::keep_early(uint64_t function, const void *stream,
                                        const Capture &at) noexcept {
  OpenLaunches &open = OpenLaunches::of_thread();
  OpenLaunch launch = open.newest();
  if (launch.owner != serial_ || launch.stream != stream)
    return;
  open.drop_newest();
  launch.correlation_id = copies_ ? sink_.scoped() : 0;
  try {
    if (launch.capture_id != 0 || early_.size() == kMostEarly)
      throw std::bad_alloc(); // what is captured must follow its launch at once
    early_.push_back({function, launch, at});
  } catch (const std::bad_alloc &) {
    abandon(launch);
    lose(kUnknownFunction, 1);
  }
}

/// Ends the launches of a function that is known now. [lock held]
void InstrumentationRuntime::finish_early(uint64_t function, const Kernel &kernel) noexcept {
  std::erase_if(early_, [&](const EarlyLaunch &early) {
    if (early.function != function)
      return false;
    CurrentContext current(work_->functions(), early.launch.pool->context().context());
    if (kernel && early.launch.bytes % kernel->scratch_bytes == 0)
      end(early.launch, kernel, early.at);
    else
      abandon(early.launch);
    return true;
  });
}

/// [lock held]
void InstrumentationRuntime::abandon_early() noexcept {
  for (const EarlyLaunch &early : early_) {
    abandon(early.launch);
    lose(kUnknownFunction, 1);
  }
  early_.clear();
}

// What a launch recorded, for a program that reads it itself.

std::optional<std::vector<std::byte>> InstrumentationRuntime::read_open(void *stream) {
  OpenLaunches &open = OpenLaunches::of_thread();
  if (open.size() == 0 || open.newest().owner != serial_ || open.newest().stream != stream ||
      open.newest().capture_id != 0)
    return std::nullopt;
  // The buffer belongs to this thread's launch until that ends.
  const OpenLaunch &launch = open.newest();
  const CudaFunctions &functions = work_->functions();
  std::vector<std::byte> bytes(launch.bytes);
  work_->check(
      functions.memcpy_dtoh_async(bytes.data(), launch.buffer->address, launch.bytes, stream),
      "cuMemcpyDtoHAsync", "reading what a launch recorded");
  work_->check(functions.stream_synchronize(stream), "cuStreamSynchronize",
               "reading what a launch recorded");
  return bytes;
}

} // namespace proton
