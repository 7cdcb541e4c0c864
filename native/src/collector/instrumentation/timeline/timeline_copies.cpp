#include "collector/instrumentation/timeline/timeline_copies.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "collector/instrumentation/timeline/launch_timeline.h"
#include "driver/own_work.h"
#include "support/error.h"

namespace proton {
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
  const CudaWork &work = context.work();
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
  const CudaWorkFunctions &functions = chunk.context->work().functions();
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
  const CudaWorkFunctions &functions = job.context->work().functions();
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

} // namespace proton
