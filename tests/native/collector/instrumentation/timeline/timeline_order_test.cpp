// The order of work on streams while timelines are copied, on the double of libcuda.
#include <algorithm>
#include <set>

#include "check.h"
#include "collector/instrumentation/runtime/instrumented_launches.h"
#include "support/error.h"

using namespace launches;

namespace {

constexpr InstrumentationOptions kTimeline{size_t{1} << 30, ~size_t{0}, true};

/// A runtime that records timelines of function 7; its first launch is over.
class TimelineRun {
public:
  TimelineRun() : runtime(sink, kTimeline) {
    runtime.start();
    runtime.add_kernel(7, make_kernel("matmul"));
    launch(runtime, 7, 4, kFirstCycles);
    copy_stream = fake_cuda_newest_stream();
  }
  /// Launches of 1, 2, ... cycles more than the first.
  void launch_late(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      played.push_back(launches::launch_late(
          runtime, 7, 4, kFirstCycles + static_cast<uint32_t>(played.size()) + 1));
  }
  size_t ran() const {
    return static_cast<size_t>(std::count_if(played.begin(), played.end(),
                                             [](const auto &each) { return each->has_run; }));
  }
  size_t buffers() const {
    std::set<cuda::DevicePointer> all;
    for (const auto &each : played)
      all.insert(each->buffer);
    return all.size();
  }
  /// Every launch has its own timeline, in their order.
  void check_timelines() {
    CHECK_EQ(sink.timelines.size(), played.size() + 1);
    for (uint32_t i = 0; i < sink.timelines.size(); ++i) {
      CHECK_EQ(sink.timelines[i].instances.size(), 8);
      for (const TimelineScope &instance : sink.timelines[i].instances)
        CHECK_EQ(instance.cycles, kFirstCycles + i);
    }
  }

  static constexpr uint32_t kFirstCycles = 100;

  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime;
  void *copy_stream = nullptr;
  std::vector<std::unique_ptr<Played>> played;
};

} // namespace

TEST(a_copy_waits_for_its_launch) {
  TimelineRun recorded;
  fake_cuda_hold(stream(1));
  recorded.launch_late(3);
  CHECK_EQ(recorded.ran(), 0);

  fake_cuda_let_go(stream(1));
  recorded.runtime.stop();

  recorded.check_timelines();
  CHECK_EQ(recorded.sink.total(&KernelTotals::launches), 4);
  CHECK_EQ(recorded.sink.total(&KernelTotals::programs), 16);
  CHECK_EQ(recorded.sink.lost, 0);
}

TEST(launches_go_on_while_the_copies_of_others_wait) {
  TimelineRun recorded;
  fake_cuda_hold(recorded.copy_stream);

  recorded.launch_late(ScratchPool::kMostCopied);

  CHECK_EQ(recorded.ran(), ScratchPool::kMostCopied);
  CHECK_EQ(recorded.buffers(), ScratchPool::kMostCopied);
  fake_cuda_let_go(recorded.copy_stream);
  recorded.runtime.stop();
  recorded.check_timelines();
}

TEST(a_launch_does_not_overwrite_what_is_still_copied) {
  TimelineRun recorded;
  fake_cuda_hold(recorded.copy_stream);

  recorded.launch_late(3 * ScratchPool::kMostCopied);

  CHECK_EQ(recorded.ran(), ScratchPool::kMostCopied); // the stream waits, the thread does not
  CHECK_EQ(recorded.buffers(), ScratchPool::kMostCopied);
  fake_cuda_let_go(recorded.copy_stream);
  CHECK_EQ(recorded.ran(), recorded.played.size());
  recorded.runtime.stop();
  recorded.check_timelines();
  CHECK_EQ(recorded.sink.total(&KernelTotals::launches), recorded.played.size() + 1);
  CHECK_EQ(recorded.sink.total(&KernelTotals::skipped_programs), 0);
  CHECK_EQ(recorded.sink.lost, 0);
}

TEST(launches_ask_for_no_memory_after_the_first) {
  TimelineRun recorded;
  uint64_t before = fake_cuda_calls("cuMemAlloc_v2") + fake_cuda_calls("cuEventCreate");
  fake_cuda_hold(recorded.copy_stream);

  recorded.launch_late(3 * ScratchPool::kMostCopied);

  CHECK_EQ(fake_cuda_calls("cuMemAlloc_v2") + fake_cuda_calls("cuEventCreate"), before);
  fake_cuda_let_go(recorded.copy_stream);
  recorded.runtime.stop();
  recorded.check_timelines();
}

namespace {

/// Buffers of stream 1, without a runtime.
class Pooled {
public:
  Pooled() : work_(CudaDriver::open_for_work()), device(work_, current()), pool(device, false) {}
  ~Pooled() {
    fake_cuda_let_go(device.copy_stream());
    pool.free_all();
    CHECK_EQ(pool.bytes(), 0);
    device.release();
  }
  cuda::DevicePointer use(size_t bytes) {
    ScratchBuffer &buffer = pool.take(bytes, stream(1), true);
    pool.hand_over(buffer, stream(1));
    pool.give_back(buffer);
    return buffer.address;
  }

private:
  void *current() const {
    void *context = nullptr;
    work_.functions().ctx_get_current(&context);
    return context;
  }
  CudaDriver work_;

public:
  DeviceContext device;
  ScratchPool pool;
};

} // namespace

TEST(a_buffer_whose_copy_is_over_is_used_again) {
  Pooled pooled;
  std::set<cuda::DevicePointer> addresses;
  uint64_t waits = fake_cuda_calls("cuStreamWaitEvent");
  for (int i = 0; i < 20; ++i)
    addresses.insert(pooled.use(1000));

  CHECK(addresses.size() <= ScratchPool::kMostCopied);
  CHECK_EQ(fake_cuda_calls("cuStreamWaitEvent"), waits + 20); // of the copies, not of the launches
}

TEST(launches_wait_where_there_is_no_memory_for_one_more_buffer) {
  Pooled pooled;
  fake_cuda_hold(pooled.device.copy_stream());
  fake_cuda_plan_fault("cuMemAlloc_v2", cuda::kErrorOutOfMemory, 1);
  cuda::DevicePointer first = pooled.use(1000);
  fake_cuda_plan_fault("cuMemAlloc_v2", cuda::kErrorOutOfMemory, 0);

  CHECK_EQ(pooled.use(1000), first);
  CHECK(!fake_cuda_fault_waits());
  CHECK(pooled.use(1000) != first); // there is some again
}

TEST(large_buffers_are_bounded_by_their_bytes) {
  Pooled pooled;
  fake_cuda_hold(pooled.device.copy_stream());
  constexpr size_t kBytes = ScratchPool::kMostCopiedBytes / 2 + 1;

  cuda::DevicePointer first = pooled.use(kBytes);

  CHECK_EQ(pooled.use(kBytes), first);
}

TEST(a_buffer_that_was_not_reduced_is_cleared_behind_its_copy) {
  TimelineRun recorded;
  fake_cuda_hold(recorded.copy_stream);
  fake_cuda_plan_fault("cuLaunchKernel", 700, 2); // two are the clocks around the launch
  recorded.launch_late(2 * ScratchPool::kMostCopied);
  fake_cuda_let_go(recorded.copy_stream);
  recorded.runtime.stop();

  recorded.check_timelines();
  CHECK_EQ(recorded.sink.lost, 1);
  CHECK_EQ(recorded.sink.total(&KernelTotals::launches), recorded.played.size());
  CHECK_EQ(recorded.sink.total(&KernelTotals::programs), 4 * recorded.played.size());
}

TEST(a_flush_waits_for_reductions_of_timelines_when_the_context_cannot_be_waited_for) {
  TimelineRun recorded;
  fake_cuda_hold(recorded.copy_stream);
  recorded.launch_late(2);
  fake_cuda_plan_fault("cuCtxSynchronize", cuda::kErrorStreamCaptureUnsupported, 0);

  recorded.runtime.flush();

  recorded.check_timelines();
  CHECK_EQ(recorded.sink.total(&KernelTotals::launches), 3);
  recorded.runtime.stop();
}

TEST(a_launch_whose_stream_cannot_wait_is_refused) {
  TimelineRun recorded;
  fake_cuda_hold(recorded.copy_stream);
  recorded.launch_late(ScratchPool::kMostCopied);
  uint64_t waits = fake_cuda_calls("cuStreamWaitEvent");
  fake_cuda_plan_fault("cuStreamWaitEvent", 700, 0);

  CHECK_THROWS(recorded.runtime.allocate(4 * kScratchBytes, stream(1)), Error);

  CHECK_EQ(fake_cuda_calls("cuStreamWaitEvent"), waits + 1);
  fake_cuda_let_go(recorded.copy_stream);
  recorded.launch_late(1);
  recorded.runtime.stop();
  recorded.check_timelines();
}

TEST(a_launch_that_the_copies_cannot_follow_keeps_its_totals) {
  const char *const calls[] = {"cuEventRecord", "cuStreamWaitEvent", "cuMemcpyDtoHAsync_v2"};
  for (const char *call : calls) {
    TimelineRun recorded;
    fake_cuda_plan_fault(call, 700, 0);
    recorded.launch_late(1);
    CHECK(!fake_cuda_fault_waits());
    recorded.played.clear(); // it has no timeline
    recorded.runtime.stop();

    recorded.check_timelines();
    CHECK_EQ(recorded.sink.lost, 1);
    CHECK_EQ(recorded.sink.total(&KernelTotals::launches), 2);
  }
}

TEST(a_buffer_whose_end_cannot_be_noted_is_waited_for) {
  TimelineRun recorded;
  fake_cuda_hold(recorded.copy_stream);
  fake_cuda_plan_fault("cuEventRecord", 700, 2); // launch, copy, and then the reduction
  recorded.launch_late(1);
  CHECK(!fake_cuda_fault_waits());
  recorded.launch_late(2 * ScratchPool::kMostCopied); // one of them gets the buffer
  recorded.runtime.stop();

  recorded.check_timelines();
  CHECK_EQ(recorded.sink.lost, 0);
}

TEST(streams_and_events_are_given_back_at_the_end) {
  size_t handles = fake_cuda_handles(), memory = fake_cuda_allocations();
  {
    TimelineRun recorded;
    fake_cuda_hold(recorded.copy_stream);
    recorded.launch_late(6);
    fake_cuda_let_go(recorded.copy_stream);
    CHECK(fake_cuda_handles() > handles);
    recorded.runtime.stop();
  }

  CHECK_EQ(fake_cuda_handles(), handles);
  CHECK_EQ(fake_cuda_allocations(), memory);
}

TEST(a_tree_has_no_stream_for_copies) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  uint64_t events = fake_cuda_calls("cuEventRecord") + fake_cuda_calls("cuEventQuery");
  uint64_t streams = fake_cuda_calls("cuStreamCreate");
  launch(runtime, 7, 4, 100);
  launch(runtime, 7, 4, 100);

  CHECK_EQ(fake_cuda_calls("cuEventRecord") + fake_cuda_calls("cuEventQuery"), events);
  CHECK_EQ(fake_cuda_calls("cuStreamCreate"), streams + 1);
  runtime.stop();
}
