#include "collector/instrumentation/timeline/timeline_copies.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <utility>

#include "collector/instrumentation/decoder/host_decoder.h"
#include "driver/own_work.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr int kTries = 5;
constexpr int64_t kLongNs = 2'000'000; // the device is busy: further tries take as long
constexpr double kWorstDrift = 1e-4;   // a quartz is a few ten parts in a million off

const std::string kTimerPurpose = "comparing the device's timer with the host's clock";

int64_t less(int64_t monotonic_ns, uint64_t timer_ns) {
  return static_cast<int64_t>(static_cast<uint64_t>(monotonic_ns) - timer_ns);
}

} // namespace

void DeviceTimer::observe() noexcept {
  int64_t now_ns = monotonic_ns();
  if (tried_ns_ != 0 && now_ns - tried_ns_ < between_ns_)
    return;
  tried_ns_ = now_ns;
  try {
    read();
  } catch (const std::exception &error) { // scopes stay where the older readings put them
    try {
      failure_ = error.what();
    } catch (...) { // no memory for the reason
    }
  }
}

void DeviceTimer::read() {
  if (!anchors_)
    anchors_ = static_cast<device::ClockAnchor *>(
        context_.allocate_host(context_.processors() * sizeof(device::ClockAnchor), kTimerPurpose));
  std::optional<Reading> best;
  int64_t start_ns = monotonic_ns();
  for (int i = 0; i < kTries && monotonic_ns() - start_ns < kLongNs; ++i) {
    std::optional<Reading> reading = read_once();
    if (reading && (!best || reading->offset.uncertainty_ns < best->offset.uncertainty_ns))
      best = reading;
  }
  if (!best)
    throw Error(ErrorCode::kUnavailable,
                kTimerPurpose +
                    " failed: no multiprocessor noted its timer; scopes inside kernels are "
                    "placed by what the timer says");
  failure_.clear();
  if (readings_ != 0 && !is_worth_keeping(*best))
    return;
  if (readings_ == 0)
    first_ = *best;
  newest_ = *best;
  ++readings_;
}

std::optional<DeviceTimer::Reading> DeviceTimer::read_once() {
  const CudaDriver &work = context_.work();
  RelaxedCapture relaxed(work.functions());
  std::memset(anchors_, 0, context_.processors() * sizeof(device::ClockAnchor));
  device::AnchorTask task{};
  task.anchors = anchors_;
  task.processors = context_.processors();
  int64_t before_ns = monotonic_ns();
  work.check(context_.anchor(task, context_.side_stream()), "cuLaunchKernel", kTimerPurpose);
  work.check(work.functions().stream_synchronize(context_.side_stream()), "cuStreamSynchronize",
             kTimerPurpose);
  int64_t after_ns = monotonic_ns();
  uint64_t first_ns = UINT64_MAX, last_ns = 0;
  for (uint32_t i = 0; i < context_.processors(); ++i) {
    if (anchors_[i].ns == 0)
      continue;
    first_ns = std::min(first_ns, anchors_[i].ns);
    last_ns = std::max(last_ns, anchors_[i].ns);
  }
  if (last_ns == 0)
    return std::nullopt;
  // The first one was noted after one reading of the host's clock, the last one before the other.
  int64_t least_ns = less(before_ns, first_ns), most_ns = less(after_ns, last_ns);
  int64_t apart_ns = std::max<int64_t>(most_ns - least_ns, 0);
  return Reading{first_ns + (last_ns - first_ns) / 2,
                 {least_ns + (most_ns - least_ns) / 2, (apart_ns + 1) / 2}};
}

bool DeviceTimer::is_worth_keeping(const Reading &reading) const noexcept {
  auto since_ns = static_cast<double>(reading.timer_ns - newest_.timer_ns);
  double grown_ns = static_cast<double>(newest_.offset.uncertainty_ns) + since_ns * kWorstDrift;
  return static_cast<double>(reading.offset.uncertainty_ns) <= grown_ns;
}

double DeviceTimer::drift() const noexcept {
  int64_t moved_ns = newest_.offset.offset_ns - first_.offset.offset_ns;
  int64_t unsure_ns = newest_.offset.uncertainty_ns + first_.offset.uncertainty_ns;
  if (newest_.timer_ns <= first_.timer_ns || std::abs(moved_ns) <= unsure_ns)
    return 0;
  return static_cast<double>(moved_ns) / static_cast<double>(newest_.timer_ns - first_.timer_ns);
}

TimerOffset DeviceTimer::at(uint64_t timer_ns) const noexcept {
  TimerOffset offset = newest_.offset;
  if (readings_ != 0)
    offset.offset_ns += std::llround(
        drift() * static_cast<double>(static_cast<int64_t>(timer_ns - newest_.timer_ns)));
  return offset;
}

DeviceTimerFacts DeviceTimer::facts() const {
  return {context_.device(), newest_.offset, readings_, drift() * 1e6, failure_};
}

void DeviceTimer::free() noexcept {
  if (anchors_)
    context_.free_host(anchors_);
  anchors_ = nullptr;
}

namespace {

constexpr size_t kLeastCopyBytes = size_t{64} << 10;
constexpr size_t kBlockBytes = size_t{64} << 20;
constexpr size_t kMostOfBlock = 16; // chunks

const std::string kCopyPurpose = "copying the timeline of a launch";

} // namespace

TimelineCopies::TimelineCopies(RecordSink &sink, size_t pinned_bytes)
    : sink_(sink), pinned_bytes_(pinned_bytes), thread_([this] { run(); }) {}

TimelineCopies::~TimelineCopies() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  has_work_.notify_all();
  thread_.join();
  for (Job &job : aside_)
    static_cast<void>(job.chunk.release()); // its context still runs, or is broken
}

cuda::Result TimelineCopies::mark(DeviceContext &context, const CopiedLaunch &launch,
                                  size_t at) noexcept {
  device::AnchorTask task{};
  task.anchors = reinterpret_cast<device::ClockAnchor *>(launch.buffer + at);
  task.processors = launch.layout.processors;
  return context.anchor(task, launch.stream);
}

void TimelineCopies::copy(DeviceContext &context, const CopiedLaunch &launch) {
  const CudaDriver &work = context.work();
  void *stream = context.copy_stream();
  Jobs job;
  job.push_back({&context, launch, take_chunk(context, launch.layout.bytes())});
  const Chunk &chunk = *job.front().chunk;
  const char *call = "cuMemcpyDtoHAsync";
  OwnWork own;
  cuda::Result result = work.functions().memcpy_dtoh_async(chunk.memory, launch.buffer,
                                                           launch.layout.bytes(), stream);
  if (result == cuda::kSuccess) {
    call = "cuEventRecord";
    result = work.functions().event_record(chunk.event, stream);
  }
  std::lock_guard lock(mutex_);
  if (result != cuda::kSuccess) {
    put_aside(job);
    work.check(result, call, kCopyPurpose);
  }
  jobs_.splice(jobs_.end(), job);
  ++queued_;
  has_work_.notify_one();
}

/// The copy may be in progress, so the chunk must not be reused. [lock held]
void TimelineCopies::put_aside(Jobs &job) noexcept {
  taken_bytes_ -= job.front().chunk->bytes;
  aside_.splice(aside_.end(), job);
  has_room_.notify_all();
}

std::unique_ptr<TimelineCopies::Chunk> TimelineCopies::find_free(DeviceContext &context,
                                                                 size_t bytes) {
  for (auto &chunk : free_)
    if (chunk->context == &context && chunk->bytes >= bytes) {
      std::swap(chunk, free_.back());
      std::unique_ptr<Chunk> found = std::move(free_.back());
      free_.pop_back();
      return found;
    }
  return nullptr;
}

std::unique_ptr<TimelineCopies::Chunk> TimelineCopies::take_chunk(DeviceContext &context,
                                                                  size_t bytes) {
  size_t rounded = bytes < kLeastCopyBytes ? kLeastCopyBytes : std::bit_ceil(bytes);
  std::unique_lock lock(mutex_);
  auto has_room = [&] { return taken_bytes_ == 0 || taken_bytes_ + rounded <= pinned_bytes_; };
  if (!has_room()) {
    ++facts_.waits;
    has_room_.wait(lock, has_room);
  }
  std::unique_ptr<Chunk> chunk = find_free(context, rounded);
  if (!chunk) {
    for (auto &unused : std::exchange(free_, {})) // too small, or of another context
      free_chunk(*unused);
    add_chunks(context, rounded);
    chunk = find_free(context, rounded);
  }
  taken_bytes_ += chunk->bytes;
  return chunk;
}

TimelineCopies::Block::Block(DeviceContext &context, size_t bytes)
    : context_(context),
      memory_(static_cast<std::byte *>(context.allocate_host(bytes, kCopyPurpose))) {}

/// Makes at least one free chunk of `bytes`. [lock held]
void TimelineCopies::add_chunks(DeviceContext &context, size_t bytes) {
  size_t room = pinned_bytes_ > taken_bytes_ ? pinned_bytes_ - taken_bytes_ : 0;
  size_t count = std::clamp<size_t>(std::min(kBlockBytes, room) / bytes, 1, kMostOfBlock);
  auto block = std::make_shared<Block>(context, count * bytes);
  for (size_t i = 0; i < count; ++i) {
    auto chunk = std::make_unique<Chunk>();
    chunk->context = &context;
    chunk->bytes = bytes;
    try {
      chunk->event = context.make_event(kCopyPurpose);
    } catch (const Error &) {
      if (i > 0)
        return; // the existing chunks serve
      throw;
    }
    chunk->block = block;
    chunk->memory = block->at(i * bytes);
    facts_.pinned_bytes += bytes;
    free_.push_back(std::move(chunk));
  }
}

void TimelineCopies::free_chunk(Chunk &chunk) noexcept {
  const CudaFunctions &functions = chunk.context->work().functions();
  CurrentContext current(functions, chunk.context->context());
  functions.event_destroy(chunk.event);
  chunk.block.reset(); // the last one gives the memory back
  facts_.pinned_bytes -= chunk.bytes;
}

void TimelineCopies::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [&] { return is_ending_ || !jobs_.empty(); });
    if (jobs_.empty())
      return;
    Jobs job;
    job.splice(job.end(), jobs_, jobs_.begin());
    lock.unlock();
    bool is_copied = wait_for(job.front());
    if (is_copied)
      decode(job.front());
    lock.lock();
    ++done_;
    if (!is_copied) {
      put_aside(job);
      continue;
    }
    taken_bytes_ -= job.front().chunk->bytes;
    free_.push_back(std::move(job.front().chunk));
    has_room_.notify_all();
  }
}

bool TimelineCopies::wait_for(const Job &job) noexcept {
  const CudaFunctions &functions = job.context->work().functions();
  CurrentContext current(functions, job.context->context());
  RelaxedCapture relaxed(functions);
  if (functions.event_synchronize(job.chunk->event) == cuda::kSuccess)
    return true;
  sink_.dropped({kFailedCopy, 1, true});
  return false;
}

const DeviceTimer &TimelineCopies::observed_timer(const Job &job) {
  std::unique_lock lock(mutex_);
  DeviceTimer &timer = timers_.try_emplace(job.context, *job.context).first->second;
  lock.unlock();
  CurrentContext current(job.context->work().functions(), job.context->context());
  timer.observe();
  lock.lock();
  DeviceTimerFacts facts = timer.facts();
  auto known = std::find_if(facts_.timers.begin(), facts_.timers.end(),
                            [&](const auto &each) { return each.device == facts.device; });
  if (known == facts_.timers.end())
    facts_.timers.push_back(std::move(facts));
  else
    *known = std::move(facts);
  return timer;
}

void TimelineCopies::decode(const Job &job) noexcept {
  try {
    const DeviceTimer &timer = observed_timer(job);
    LaunchTimeline timeline(*job.launch.kernel, job.launch.layout, job.chunk->memory);
    if (sink_.has_timeline_room(job.launch.at))
      timeline.decode();
    else
      timeline.leave_out();
    TimelineRecord record = timeline.record();
    record.at = job.launch.at;
    record.correlation_id = job.launch.correlation_id;
    if (!record.programs.empty())
      record.timer = timer.at(record.programs.front().init_ns);
    record.device_index = job.context->device();
    if (timeline.clock_hz() > 0) {
      std::lock_guard lock(mutex_);
      facts_.clock_hz = timeline.clock_hz();
    }
    sink_.complete(record);
  } catch (...) { // no memory of the host
    sink_.dropped({kFailedCopy, 1, true});
  }
}

void TimelineCopies::drain() {
  std::unique_lock lock(mutex_);
  has_room_.wait(lock, [this, before = queued_] { return done_ >= before; });
}

void TimelineCopies::free_all(DeviceContext &context) noexcept {
  std::lock_guard lock(mutex_);
  if (auto timer = timers_.find(&context); timer != timers_.end()) {
    timer->second.free();
    timers_.erase(timer);
  }
  std::erase_if(free_, [&](const std::unique_ptr<Chunk> &chunk) {
    bool is_its = chunk->context == &context;
    if (is_its)
      free_chunk(*chunk);
    return is_its;
  });
  aside_.remove_if([&](const Job &job) {
    bool is_its = job.context == &context;
    if (is_its)
      free_chunk(*job.chunk);
    return is_its;
  });
}

TimelineCopyFacts TimelineCopies::facts() const {
  std::lock_guard lock(mutex_);
  return facts_;
}

LaunchTimeline::LaunchTimeline(const InstrumentedKernel &kernel, const TimelineLayout &layout,
                               const std::byte *buffer)
    : kernel_(kernel), records_(buffer, layout.records_bytes), processors_(layout.processors),
      before_(reinterpret_cast<const device::ClockAnchor *>(buffer + layout.before_at())),
      after_(reinterpret_cast<const device::ClockAnchor *>(buffer + layout.after_at())),
      clock_mask_(clock_mask(kernel.has_short_clock)), rows_(kernel.has_short_clock) {
  measure_clock();
}

void LaunchTimeline::decode() {
  KernelTotals totals{};
  proton::decode(records_, kernel_.layout(), *this, totals);
}

void LaunchTimeline::leave_out() {
  const BufferLayout layout = kernel_.layout();
  uint64_t records = 0;
  for (auto left = records_; left.size() >= layout.scratch_bytes;
       left = left.subspan(layout.scratch_bytes)) {
    BlockReader block(left.first(layout.scratch_bytes), layout);
    if (block.state() != BlockState::kWritten || !is_kept(block.header().program))
      continue;
    for (uint32_t index = 0; index < layout.segments(); ++index)
      records += block.segment(index).size();
  }
  left_out_ = records / 2;
}

/// All multiprocessors share one clock, so their sum is better than the timer's resolution.
void LaunchTimeline::measure_clock() {
  double cycles = 0, ns = 0;
  for (uint32_t i = 0; i < processors_; ++i) {
    bool is_whole = before_[i].cycles != 0 && after_[i].cycles > before_[i].cycles &&
                    after_[i].ns > before_[i].ns;
    if (!is_whole)
      continue;
    cycles += static_cast<double>(after_[i].cycles - before_[i].cycles);
    ns += static_cast<double>(after_[i].ns - before_[i].ns);
  }
  clock_hz_ = ns > 0 ? cycles / ns * 1e9 : 0;
}

bool LaunchTimeline::is_kept(uint32_t program) const {
  bool is_kept = kernel_.programs.empty();
  for (auto [first, last] : kernel_.programs)
    is_kept |= program >= first && program <= last;
  return is_kept;
}

void LaunchTimeline::begin_program(const BlockHeader &header) { rows_.begin_program(header); }

void LaunchTimeline::instance(const BlockHeader &header, const ScopeInstance &instance) {
  rows_.instance(header, instance);
  newest_start_ = instance.start_clock - instance.shift_cycles;
}

void LaunchTimeline::end_program(const BlockHeader &header) {
  rows_.end_program(header);
  TimelineProgram &program = rows_.programs.back();
  if (!is_kept(header.program)) {
    rows_.instances.resize(program.first);
    rows_.programs.pop_back();
    return;
  }
  if (program.count == 0)
    return;
  TimelineScope *scopes = rows_.instances.data() + program.first;
  uint64_t origin = newest_start_ - scopes[program.count - 1].start_cycle;
  uint64_t offset = cycles_since_init(header, origin & clock_mask_);
  for (uint32_t i = 0; i < program.count; ++i)
    scopes[i].start_cycle += offset;
  program.last_cycle += offset;
}

uint64_t LaunchTimeline::cycles_since_init(const BlockHeader &header, uint64_t clock) const {
  if (header.processor >= processors_ || after_[header.processor].cycles == 0 || clock_hz_ <= 0)
    return 0;
  const device::ClockAnchor &after = after_[header.processor];
  uint64_t cycles_before_anchor = (after.cycles - clock) & clock_mask_;
  uint64_t ns_before_anchor = after.ns - header.init_ns;
  double span = static_cast<double>(ns_before_anchor) * clock_hz_ / 1e9;
  // Records of a program are later than its first time; a broken header must not move it far.
  double offset = span - static_cast<double>(cycles_before_anchor);
  constexpr double kMostCycles = 1e12;
  return offset > 0 && offset < kMostCycles ? static_cast<uint64_t>(std::llround(offset)) : 0;
}

TimelineRecord LaunchTimeline::record() const {
  TimelineRecord record;
  record.kernel = kernel_.name.c_str();
  record.clock_hz = static_cast<uint64_t>(std::llround(clock_hz_));
  record.scopes = kernel_.scopes;
  record.programs = rows_.programs;
  record.instances = rows_.instances;
  record.left_out = left_out_;
  return record;
}

} // namespace proton
