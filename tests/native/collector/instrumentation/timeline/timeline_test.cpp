// Timelines of launches, on the double of libcuda.
#include <atomic>

#include "check.h"
#include "collector/instrumentation/runtime/instrumented_launches.h"
#include "collector/instrumentation/timeline/timeline_copies.h"
#include "support/clock.h"
#include "support/error.h"

using namespace launches;

namespace {

constexpr InstrumentationOptions kTimeline{size_t{1} << 30, ~size_t{0}, true};

} // namespace

TEST(each_launch_has_a_timeline_and_totals) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, kTimeline);
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  for (int i = 0; i < 3; ++i)
    launch(runtime, 7, 4, 100);
  runtime.stop();

  CHECK_EQ(sink.timelines.size(), 3);
  for (const Sink::Timeline &timeline : sink.timelines) {
    CHECK_EQ(timeline.kernel, "matmul");
    CHECK_EQ(timeline.programs.size(), 4);
    CHECK_EQ(timeline.instances.size(), 8);
    CHECK_EQ(timeline.instances[0].cycles, 100);
    CHECK_EQ(timeline.clock_hz, 2'000'000'000); // as emulated::anchor has it
  }
  CHECK_EQ(sink.total(&KernelTotals::launches), 3);
  CHECK_EQ(sink.lost, 0);
}

TEST(cycles_are_placed_by_the_clock_of_their_multiprocessor) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, kTimeline);
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  cuda::DevicePointer buffer = runtime.allocate(kScratchBytes, stream(1));
  play(buffer, 1, 1, 100);
  auto *words = reinterpret_cast<uint32_t *>(buffer);
  uint64_t call = fake_cuda_anchor_calls(); // of the clocks behind the launch
  uint64_t ns = 1'000'000 + call * 1000, cycles = ns * 2;
  uint64_t init_ns = ns - 400;
  std::memcpy(words + 4, &init_ns, 8);
  for (uint32_t warp = 0; warp < kWarps; ++warp) {
    uint32_t *data = words + 10 + kWarps + warp * kSlots * 2;
    data[1] = static_cast<uint32_t>(cycles) - 500; // 250 ns before those clocks
    data[3] = data[1] + 100;
  }
  runtime.launched(7, stream(1));
  runtime.stop();

  CHECK_EQ(sink.timelines.size(), 1);
  CHECK_EQ(sink.timelines[0].instances[0].start_cycle, 300); // 150 ns after the first time
  CHECK_EQ(sink.timelines[0].instances[0].cycles, 100);
  CHECK_EQ(sink.timelines[0].programs[0].init_ns, init_ns);
}

TEST(each_timeline_says_how_the_timer_stands_and_which_launch_it_is_of) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, kTimeline);
  fake_cuda_set_timer(1'790'000'000'000'000'000, 0);
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  int64_t before_ns = monotonic_ns();
  for (int i = 0; i < 2; ++i) {
    cuda::DevicePointer buffer = runtime.allocate(kScratchBytes, stream(1));
    play(buffer, 1, 1, 100);
    uint64_t init_ns = fake_cuda_timer_at(monotonic_ns());
    std::memcpy(reinterpret_cast<uint32_t *>(buffer) + 4, &init_ns, 8);
    runtime.launched(7, stream(1));
  }
  runtime.stop();
  int64_t after_ns = monotonic_ns();

  CHECK_EQ(sink.timelines.size(), 2);
  for (const Sink::Timeline &timeline : sink.timelines) {
    int64_t shown_ns = timeline.timer.monotonic(timeline.programs[0].init_ns);
    CHECK(timeline.timer.is_known());
    CHECK(before_ns - timeline.timer.uncertainty_ns <= shown_ns);
    CHECK(shown_ns <= after_ns + timeline.timer.uncertainty_ns);
  }
  CHECK_EQ(sink.timelines[0].correlation_id, 1);
  CHECK_EQ(sink.timelines[1].correlation_id, 2);
  CHECK_EQ(runtime.facts().timeline.timers.at(0).readings, 1);
}

TEST(a_timer_that_cannot_be_read_is_said_and_changes_nothing) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, kTimeline);
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  cuda::DevicePointer buffer = runtime.allocate(kScratchBytes, stream(1));
  play(buffer, 1, 1, 100);
  fake_cuda_silence_timer(true);
  runtime.launched(7, stream(1));
  runtime.stop();
  fake_cuda_silence_timer(false);

  CHECK_EQ(sink.timelines.size(), 1);
  CHECK(!sink.timelines[0].timer.is_known());
  CHECK(!runtime.facts().timeline.timers.at(0).failure.empty());
  CHECK_EQ(sink.lost, 0);
}

TEST(a_flush_hands_timelines_on) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, kTimeline);
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  launch(runtime, 7, 4, 100);
  runtime.flush();

  CHECK_EQ(sink.timelines.size(), 1);
  runtime.stop();
}

TEST(programs_that_are_not_asked_for_are_left_out) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, kTimeline);
  runtime.start();
  auto kernel = make_kernel("matmul");
  kernel->programs = {{1, 1}, {3, 9}};
  kernel->finish();
  runtime.add_kernel(7, kernel);
  launch(runtime, 7, 6, 100);
  runtime.stop();

  CHECK_EQ(sink.timelines[0].programs.size(), 4);
  CHECK_EQ(sink.timelines[0].instances.size(), 8);
  CHECK_EQ(sink.timelines[0].programs[1].program, 3);
  CHECK_EQ(sink.timelines[0].programs[1].first, 2);
  CHECK_EQ(sink.total(&KernelTotals::programs), 4);
}

TEST(a_launch_without_room_is_only_counted) {
  Listening listening;
  Sink sink;
  sink.has_room = false;
  InstrumentationRuntime runtime(sink, kTimeline);
  runtime.start();
  auto kernel = make_kernel("matmul");
  kernel->programs = {{1, 1}, {3, 9}};
  kernel->finish();
  runtime.add_kernel(7, kernel);
  launch(runtime, 7, 6, 100);
  runtime.stop();

  CHECK_EQ(sink.timelines.size(), 1);
  CHECK_EQ(sink.timelines[0].programs.size(), 0);
  CHECK_EQ(sink.timelines[0].instances.size(), 0);
  CHECK_EQ(sink.timelines[0].left_out, 8);
  CHECK(runtime.facts().timeline.clock_hz > 0);
  CHECK_EQ(sink.total(&KernelTotals::programs), 4);
}

namespace {

/// Copies of one buffer, without a runtime. The destructor checks that all memory was freed.
class Copied {
public:
  Copied(RecordSink &sink, size_t pinned_bytes)
      : before_(fake_cuda_allocations()), handles_(fake_cuda_handles()),
        work_(CudaDriver::open_for_work()), device(work_, current()),
        copies(std::make_unique<TimelineCopies>(sink, pinned_bytes)),
        launched{make_kernel("matmul"), {}, {4 * kScratchBytes, device.processors()}, 0, nullptr} {
    launched.buffer = device.allocate(launched.layout.bytes(), "testing");
  }
  ~Copied() {
    copies->drain();
    copies->free_all(device);
    CHECK_EQ(copies->facts().pinned_bytes, 0);
    copies.reset();
    device.free(launched.buffer);
    device.release();
    CHECK_EQ(fake_cuda_allocations(), before_);
    CHECK_EQ(fake_cuda_handles(), handles_);
  }

private:
  void *current() const {
    void *context = nullptr;
    work_.functions().ctx_get_current(&context);
    return context;
  }
  size_t before_;
  size_t handles_;
  CudaDriver work_;

public:
  DeviceContext device;
  std::unique_ptr<TimelineCopies> copies;
  CopiedLaunch launched;
};

/// Queues another copy whenever one is decoded, until the test ends that.
class Relaunching : public Sink {
public:
  void complete(const TimelineRecord &) noexcept override {
    ++decoded;
    if (goes_on)
      copied->copies->copy(copied->device, copied->launched);
  }

  Copied *copied = nullptr;
  std::atomic<bool> goes_on{true};
  std::atomic<uint64_t> decoded{0};
};

} // namespace

TEST(memory_for_copies_is_bounded_and_waited_for) {
  Listening listening;
  Sink sink;
  {
    Copied copied(sink, 100'000); // room for one
    for (int i = 0; i < 50; ++i)
      copied.copies->copy(copied.device, copied.launched);
    copied.copies->drain();
    CHECK_EQ(copied.copies->facts().pinned_bytes, 65536);
  }

  CHECK_EQ(sink.timelines.size(), 50);
}

TEST(draining_ends_while_others_launch) {
  Relaunching sink;
  Copied copied(sink, TimelineCopies::kPinnedBytes);
  sink.copied = &copied;
  copied.copies->copy(copied.device, copied.launched);

  copied.copies->drain();

  CHECK(sink.decoded > 0);
  sink.goes_on = false;
  copied.copies->drain();
}

TEST(memory_of_a_failed_copy_is_kept_aside_and_given_back) {
  for (const char *call : {"cuMemcpyDtoHAsync_v2", "cuEventRecord"}) {
    Sink sink;
    Copied copied(sink, 100'000); // room for one
    fake_cuda_plan_fault(call, 700, 0);
    CHECK_THROWS(copied.copies->copy(copied.device, copied.launched), Error);

    copied.copies->copy(copied.device, copied.launched); // finds room
    copied.copies->drain();

    CHECK_EQ(sink.timelines.size(), 1);
    CHECK_EQ(copied.copies->facts().pinned_bytes, 2 * 65536);
  }
}

TEST(memory_of_a_copy_whose_end_was_not_seen_is_kept_aside) {
  Sink sink;
  Copied copied(sink, 100'000);
  fake_cuda_plan_fault("cuEventSynchronize", 700, 0);
  copied.copies->copy(copied.device, copied.launched);
  copied.copies->drain();
  CHECK_EQ(sink.lost, 1);

  copied.copies->copy(copied.device, copied.launched);
  copied.copies->drain();

  CHECK_EQ(sink.timelines.size(), 1);
  CHECK_EQ(copied.copies->facts().pinned_bytes, 2 * 65536);
}
