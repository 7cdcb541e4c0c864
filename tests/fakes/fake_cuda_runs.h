// Work on the devices of libcuda's double, and their memory. Included by
// fake_cuda_work.h.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "emulated_kernels.h"
#include "fake_cuda_streams.h"
#include "support/clock.h"

namespace {

/// One stream may be captured at a time; what it runs meanwhile is kept for replays.
struct FakeCapture {
  void *stream = nullptr;
  unsigned long long id = 0; ///< of the open capture; 0: none
  unsigned long long newest_id = 0;
  bool is_broken = false;
  std::thread::id thread; ///< that began it, in mode global
  std::map<unsigned long long, std::vector<std::function<void()>>> graphs;
};
FakeCapture &capture() {
  static auto *instance = new FakeCapture;
  return *instance;
}

bool is_captured(void *stream) { return capture().id != 0 && capture().stream == stream; }

bool break_open_captures() {
  std::lock_guard lock(work_mutex);
  capture().is_broken |= capture().id != 0;
  return capture().id != 0;
}

bool break_unsafe_captures(int mode) {
  std::lock_guard lock(work_mutex);
  bool is_own = capture().thread == std::this_thread::get_id();
  bool is_unsafe = capture().id != 0 && mode != cuda::kCaptureModeRelaxed && (is_own || mode == 0);
  capture().is_broken |= is_unsafe;
  return is_unsafe;
}

/// Runs the work after earlier work of the stream, or keeps it for the graph.
void run_on(void *stream, std::function<void()> work) {
  std::lock_guard lock(work_mutex);
  if (is_captured(stream))
    capture().graphs[capture().id].push_back(std::move(work));
  else
    enqueue(stream, {nullptr, 0, std::move(work)});
}

// Memory of the device, so that a test finds leaks.
std::map<void *, size_t> &allocations() {
  static auto *instance = new std::map<void *, size_t>;
  return *instance;
}

int allocate(void **memory, size_t bytes) {
  *memory = std::malloc(bytes);
  if (*memory == nullptr)
    return cuda::kErrorOutOfMemory;
  std::memset(*memory, 0xa5, bytes); // not zeroed
  std::lock_guard lock(work_mutex);
  allocations()[*memory] = bytes;
  return cuda::kSuccess;
}

int release(void *memory) {
  std::lock_guard lock(work_mutex);
  if (allocations().erase(memory) == 0)
    return cuda::kErrorInvalidValue;
  std::free(memory);
  return cuda::kSuccess;
}

const char *const kOwnKernels[] = {"proton_bench_reduce", "proton_bench_harvest",
                                   "proton_bench_anchor"};
uint64_t anchor_calls = 0;

/// The nanosecond timer of every device: of which each reading is a microsecond later, unless it is
/// set to run beside the host's clock.
struct FakeTimer {
  bool is_set = false;
  uint64_t timer_ns = 0;
  int64_t monotonic_ns = 0; ///< when it was set
  double pace = 1;          ///< nanoseconds of it in one of the host's
  bool is_silent = false;   ///< nothing is noted
};
FakeTimer timer;

uint64_t timer_now_ns() {
  uint64_t call = anchor_calls++;
  if (!timer.is_set)
    return 1'000'000 + call * 1000;
  auto since_ns = static_cast<double>(proton::monotonic_ns() - timer.monotonic_ns);
  return timer.timer_ns + static_cast<uint64_t>(since_ns * timer.pace);
}

struct FakeLaunch {
  unsigned blocks, threads, shared_bytes;
  void *stream;
};

/// Runs a kernel of ours; false for another one.
bool run_own(void *function, const FakeLaunch &launch, void **parameters) {
  namespace device = proton::device;
  if (function == kOwnKernels[0]) {
    auto task = *static_cast<device::ReduceTask *>(parameters[0]);
    run_on(launch.stream,
           [=] { emulated::reduce(task, launch.blocks, launch.threads, launch.shared_bytes); });
  } else if (function == kOwnKernels[1]) {
    auto task = *static_cast<device::HarvestTask *>(parameters[0]);
    run_on(launch.stream, [=] { emulated::harvest(task); });
  } else if (function == kOwnKernels[2]) {
    auto task = *static_cast<device::AnchorTask *>(parameters[0]);
    run_on(launch.stream, [=] {
      if (!timer.is_silent)
        emulated::anchor(task, timer_now_ns());
    });
  } else {
    return false;
  }
  return true;
}

} // namespace

// Control.
EXPORT size_t fake_cuda_allocations() {
  std::lock_guard lock(work_mutex);
  return allocations().size();
}
/// How often clocks were noted: see FakeTimer.
EXPORT uint64_t fake_cuda_anchor_calls() {
  std::lock_guard lock(work_mutex);
  return anchor_calls;
}
/// From now on the timer runs from `timer_ns`, faster than the host's clock by this part.
EXPORT void fake_cuda_set_timer(uint64_t timer_ns, double faster) {
  std::lock_guard lock(work_mutex);
  timer = {true, timer_ns, proton::monotonic_ns(), 1 + faster, false};
}
EXPORT void fake_cuda_silence_timer(bool is_silent) {
  std::lock_guard lock(work_mutex);
  timer.is_silent = is_silent;
}
/// The timer at a time of the host's clock, once it was set.
EXPORT uint64_t fake_cuda_timer_at(int64_t monotonic_ns) {
  std::lock_guard lock(work_mutex);
  auto since_ns = static_cast<double>(monotonic_ns - timer.monotonic_ns);
  return timer.timer_ns + static_cast<uint64_t>(static_cast<int64_t>(since_ns * timer.pace));
}
/// Begins to capture what runs on the stream; returns the id of the graph.
EXPORT unsigned long long fake_cuda_begin_capture(void *stream) {
  std::lock_guard lock(work_mutex);
  capture().stream = stream;
  capture().thread = std::this_thread::get_id();
  capture().is_broken = false;
  return capture().id = ++capture().newest_id;
}
/// False if the capture was broken.
EXPORT bool fake_cuda_end_capture() {
  std::lock_guard lock(work_mutex);
  capture().id = 0;
  return !capture().is_broken;
}
EXPORT void fake_cuda_replay(unsigned long long id) {
  std::lock_guard lock(work_mutex);
  for (const std::function<void()> &work : capture().graphs[id])
    work();
}
