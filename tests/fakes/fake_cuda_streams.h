// Streams and events of libcuda's double. What is given to a stream runs at once, unless the stream
// waits for an event or a test holds it. A thread that waits for an event sleeps until the device
// gets to it; one that waits for a stream that is held lets it go. Included by fake_cuda_runs.h.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <set>

namespace {

constexpr int kErrorInvalidHandle = 400;

/// The newest record of an event, and the one that the device has reached.
struct FakeEvent {
  uint64_t recorded = 0;
  uint64_t reached = 0;
};

struct FakeWork {
  std::shared_ptr<FakeEvent> waits_for; ///< null: for nothing
  uint64_t record = 0;                  ///< of that event
  std::function<void()> run;
};

struct FakeStream {
  std::deque<FakeWork> queue;
  bool is_held = false;
};

std::recursive_mutex work_mutex;
std::condition_variable_any work_ran;

std::map<void *, FakeStream> &streams() {
  static auto *instance = new std::map<void *, FakeStream>;
  return *instance;
}
std::map<void *, std::shared_ptr<FakeEvent>> &events() {
  static auto *instance = new std::map<void *, std::shared_ptr<FakeEvent>>;
  return *instance;
}
/// Streams that were created and not destroyed.
std::set<void *> &created_streams() {
  static auto *instance = new std::set<void *>;
  return *instance;
}
void *newest_stream = nullptr;

void *new_handle() {
  static std::atomic<uint64_t> newest{0};
  return reinterpret_cast<void *>(5ULL << 44 | ++newest << 4);
}

/// Whether the stream's next work ran. [lock held]
bool step(FakeStream &stream) {
  if (stream.is_held || stream.queue.empty())
    return false;
  FakeWork &next = stream.queue.front();
  if (next.waits_for && next.waits_for->reached < next.record)
    return false;
  std::function<void()> run = std::move(next.run);
  stream.queue.pop_front();
  if (run)
    run();
  return true;
}

/// Runs what can run. [lock held]
void run_streams() {
  bool has_run = true;
  while (has_run) {
    has_run = false;
    for (auto &[handle, stream] : streams())
      while (step(stream))
        has_run = true;
  }
  work_ran.notify_all();
}

/// [lock held]
void enqueue(void *stream, FakeWork work) {
  streams()[stream].queue.push_back(std::move(work));
  run_streams();
}

/// Runs the remaining work of one stream, or of all (null). A wait that would last for ever lets
/// every stream go.
void wait_for_streams(const void *only) {
  std::lock_guard lock(work_mutex);
  bool is_done = true;
  for (const auto &[handle, stream] : streams())
    is_done &= (only != nullptr && handle != only) || stream.queue.empty();
  if (is_done)
    return;
  for (auto &[handle, stream] : streams())
    stream.is_held = false;
  run_streams();
}

/// Null if there is no such event.
std::shared_ptr<FakeEvent> find_event(void *handle) {
  auto found = events().find(handle);
  return found == events().end() ? nullptr : found->second;
}

} // namespace

#include "fake_cuda_stream_control.h"

EXPORT int cuStreamCreate(void **stream, unsigned) {
  FAULT(cuStreamCreate);
  std::lock_guard lock(work_mutex);
  *stream = newest_stream = new_handle();
  created_streams().insert(*stream);
  return cuda::kSuccess;
}
EXPORT int cuStreamDestroy_v2(void *stream) {
  FAULT(cuStreamDestroy_v2);
  std::lock_guard lock(work_mutex);
  if (auto found = streams().find(stream); found != streams().end() && found->second.queue.empty())
    streams().erase(found); // otherwise what it was given still runs
  return created_streams().erase(stream) == 0 ? kErrorInvalidHandle : cuda::kSuccess;
}
EXPORT int cuStreamSynchronize(void *stream) {
  UNSAFE(cuStreamSynchronize);
  wait_for_streams(stream);
  return cuda::kSuccess;
}
EXPORT int cuStreamWaitEvent(void *stream, void *handle, unsigned) {
  FAULT(cuStreamWaitEvent);
  std::lock_guard lock(work_mutex);
  std::shared_ptr<FakeEvent> event = find_event(handle);
  if (!event)
    return kErrorInvalidHandle;
  enqueue(stream, {event, event->recorded, nullptr});
  return cuda::kSuccess;
}

EXPORT int cuEventCreate(void **event, unsigned) {
  FAULT(cuEventCreate);
  std::lock_guard lock(work_mutex);
  *event = new_handle();
  events()[*event] = std::make_shared<FakeEvent>();
  return cuda::kSuccess;
}
EXPORT int cuEventDestroy_v2(void *event) {
  FAULT(cuEventDestroy_v2);
  std::lock_guard lock(work_mutex);
  return events().erase(event) == 0 ? kErrorInvalidHandle : cuda::kSuccess;
}
EXPORT int cuEventRecord(void *handle, void *stream) {
  FAULT(cuEventRecord);
  std::lock_guard lock(work_mutex);
  std::shared_ptr<FakeEvent> event = find_event(handle);
  if (!event)
    return kErrorInvalidHandle;
  uint64_t record = ++event->recorded;
  enqueue(stream, {nullptr, 0, [=] { event->reached = std::max(event->reached, record); }});
  return cuda::kSuccess;
}
EXPORT int cuEventQuery(void *handle) {
  UNSAFE(cuEventQuery);
  std::lock_guard lock(work_mutex);
  std::shared_ptr<FakeEvent> event = find_event(handle);
  if (!event)
    return kErrorInvalidHandle;
  return event->reached < event->recorded ? cuda::kErrorNotReady : cuda::kSuccess;
}
EXPORT int cuEventSynchronize(void *handle) {
  UNSAFE(cuEventSynchronize);
  std::unique_lock lock(work_mutex);
  std::shared_ptr<FakeEvent> event = find_event(handle);
  if (!event)
    return kErrorInvalidHandle;
  uint64_t record = event->recorded;
  work_ran.wait(lock, [&] { return event->reached >= record; });
  return cuda::kSuccess;
}
