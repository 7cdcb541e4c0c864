// Buffers and totals of launches, on the double of libcuda.
#include <thread>

#include "check.h"
#include "collector/instrumentation/runtime/instrumented_launches.h"
#include "support/error.h"

using namespace launches;

TEST(totals_of_launches_come_with_the_flush) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));

  for (int i = 0; i < 3; ++i)
    launch(runtime, 7, 4, 100);
  CHECK_EQ(sink.cycles.size(), 0);
  runtime.flush();

  CHECK_EQ(sink.cycles.size(), 1);
  CHECK_EQ(sink.cycles[0].kernel, "matmul");
  CHECK_EQ(sink.cycles[0].at.epoch, 1);
  CHECK_EQ(sink.cycles[0].totals.launches, 3);
  CHECK_EQ(sink.cycles[0].totals.programs, 12);
  CHECK_EQ(sink.cycles[0].scopes[0].count, 0);
  CHECK_EQ(sink.cycles[0].scopes[0].min_cycles, ~uint64_t{0});
  CHECK_EQ(sink.cycles[0].scopes[1].count, 24);
  CHECK_EQ(sink.cycles[0].scopes[1].cycles, 2400);
  CHECK_EQ(sink.cycles[0].scopes[1].min_cycles, 100);
  CHECK_EQ(sink.cycles[0].scopes[1].max_cycles, 100);
  runtime.stop();
  CHECK_EQ(sink.lost, 0);
}

TEST(a_flush_hands_on_only_what_is_new) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  launch(runtime, 7, 1, 10);
  runtime.flush();
  runtime.flush();
  launch(runtime, 7, 1, 30);
  runtime.stop();

  CHECK_EQ(sink.cycles.size(), 2);
  CHECK_EQ(sink.cycles[1].scopes[1].count, 2);
  CHECK_EQ(sink.cycles[1].scopes[1].min_cycles, 30);
}

TEST(a_launch_that_ends_before_its_function_is_described_counts) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();

  launch(runtime, 7, 4, 100);
  launch(runtime, 7, 4, 100);
  runtime.add_kernel(7, make_kernel("matmul"));
  launch(runtime, 7, 4, 100);
  runtime.stop();

  CHECK_EQ(sink.total(&KernelTotals::launches), 3);
  CHECK_EQ(sink.cycles[0].scopes[1].count, 24);
  CHECK_EQ(sink.lost, 0);
}

TEST(a_launch_of_a_function_without_a_description_is_counted_as_lost) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();

  launch(runtime, 7, 4, 100);
  runtime.stop();

  CHECK_EQ(sink.cycles.size(), 0);
  CHECK_EQ(sink.lost, 1);
  CHECK_EQ(runtime.facts().abandoned, 1);
}

TEST(a_plain_kernel_within_a_launch_leaves_its_buffer_alone) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  runtime.add_plain(8);

  cuda::DevicePointer buffer = runtime.allocate(4 * kScratchBytes, stream(1));
  runtime.launched(8, stream(1)); // evaluating the launch's metadata launched it
  play(buffer, 4, 1, 100);
  runtime.launched(7, stream(1));
  runtime.stop();

  CHECK_EQ(sink.total(&KernelTotals::launches), 1);
  CHECK_EQ(sink.lost, 0);
}

TEST(launches_do_not_wait_for_the_device) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  launch(runtime, 7, 4, 100);
  uint64_t waits = fake_cuda_synchronisations() + fake_cuda_calls("cuStreamSynchronize");
  uint64_t memory = fake_cuda_calls("cuMemAlloc_v2") + fake_cuda_calls("cuMemsetD8Async");

  for (int i = 0; i < 100; ++i)
    launch(runtime, 7, 4, 100);

  CHECK_EQ(fake_cuda_synchronisations() + fake_cuda_calls("cuStreamSynchronize"), waits);
  CHECK_EQ(fake_cuda_calls("cuMemAlloc_v2") + fake_cuda_calls("cuMemsetD8Async"), memory);
  runtime.stop();
  CHECK_EQ(sink.total(&KernelTotals::launches), 101);
}

TEST(buffers_are_of_one_stream_and_grow) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));

  launch(runtime, 7, 4, 100, stream(1));
  launch(runtime, 7, 4, 100, stream(2));
  cuda::DevicePointer first = runtime.allocate(kScratchBytes, stream(1));
  runtime.launched(7, stream(1));
  cuda::DevicePointer second = runtime.allocate(kScratchBytes, stream(2));
  runtime.launched(7, stream(2));
  CHECK(first != second);
  size_t before = fake_cuda_allocations();
  launch(runtime, 7, 100'000, 100, stream(1));
  CHECK_EQ(fake_cuda_allocations(), before + 1); // the small one may still be in use
  runtime.flush();
  CHECK_EQ(fake_cuda_allocations(), before);
  runtime.stop();
}

TEST(everything_is_given_back_at_the_end) {
  Listening listening;
  size_t before = fake_cuda_allocations();
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  launch(runtime, 7, 4, 100);
  CHECK(fake_cuda_allocations() > before);

  runtime.stop();

  CHECK_EQ(fake_cuda_allocations(), before);
  CHECK_EQ(sink.total(&KernelTotals::launches), 1);
}

TEST(a_failed_launch_leaves_nothing_behind) {
  Listening listening;
  size_t before = fake_cuda_allocations();
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  for (int i = 0; i < 20; ++i)
    runtime.allocate(kScratchBytes, stream(1)); // the launch raised
  runtime.launched(99, stream(1));              // a kernel without records

  launch(runtime, 7, 4, 100);

  runtime.stop();
  CHECK_EQ(sink.total(&KernelTotals::launches), 1);
  CHECK_EQ(sink.total(&KernelTotals::programs), 4);
  CHECK_EQ(runtime.facts().abandoned, 20);
  CHECK_EQ(fake_cuda_allocations(), before);
}

TEST(a_kernel_may_be_launched_while_another_one_is) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("outer"));
  runtime.add_kernel(8, make_kernel("inner"));

  cuda::DevicePointer outer = runtime.allocate(8 * kScratchBytes, stream(1));
  launch(runtime, 8, 2, 50);
  play(outer, 8, 0, 20);
  runtime.launched(7, stream(1));
  runtime.stop();

  CHECK_EQ(sink.cycles.size(), 2);
  for (const Sink::Cycles &each : sink.cycles)
    CHECK_EQ(each.totals.programs, each.kernel == "outer" ? 8 : 2);
}

TEST(nothing_is_recorded_without_a_session) {
  publish_session_state({});
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  launch(runtime, 7, 4, 100);
  Listening listening;
  launch(runtime, 7, 2, 100);
  runtime.stop();

  CHECK_EQ(sink.total(&KernelTotals::launches), 1);
  CHECK_EQ(sink.total(&KernelTotals::programs), 2);
}

TEST(a_launch_over_the_limit_is_refused_with_its_size) {
  Sink sink;
  InstrumentationRuntime runtime(sink, {1 << 20, size_t{1} << 19, false});
  runtime.start();
  auto message = [&](size_t bytes) -> std::string {
    try {
      runtime.allocate(bytes, stream(1));
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };

  CHECK(message(3 << 20).find("3145728") != std::string::npos);
  CHECK(message(3 << 20).find("byte_limit=1048576") != std::string::npos);
  CHECK(message(1 << 19).find("reaches only 524288") != std::string::npos);
  CHECK_EQ(message(1 << 18), "");
  runtime.stop();
}

TEST(places_of_older_epochs_are_used_again) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  for (EpochId epoch = 1; epoch < 2000; ++epoch) {
    listen_in_epoch(epoch);
    launch(runtime, 7, 1, 100);
    if (epoch % 8 == 0)
      runtime.flush();
  }

  CHECK(runtime.facts().device_bytes <= 2 << 20);
  runtime.stop();
  CHECK_EQ(sink.total(&KernelTotals::launches), 1999);
}

TEST(contexts_have_memory_of_their_own) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  launch(runtime, 7, 1, 10);
  fake_cuda_set_context(2);
  launch(runtime, 7, 1, 10);
  fake_cuda_set_context(1);
  runtime.stop();

  CHECK_EQ(sink.cycles.size(), 2);
  CHECK(sink.cycles[0].device != sink.cycles[1].device);
}

TEST(a_new_thread_gets_the_context_that_triton_gives_it) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  std::thread([&] {
    fake_cuda_set_context(0);
    launch(runtime, 7, 1, 10);
  }).join();
  runtime.stop();

  CHECK_EQ(sink.cycles.size(), 1);
  CHECK_EQ(sink.cycles[0].device, 0);
}

TEST(threads_launch_at_the_same_time) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  std::vector<std::thread> threads;
  for (uintptr_t number = 1; number <= 4; ++number)
    threads.emplace_back([&, number] {
      for (int i = 0; i < 200; ++i)
        launch(runtime, 7, 2, 10, stream(number / 2));
    });
  for (int i = 0; i < 10; ++i)
    runtime.flush();
  for (std::thread &thread : threads)
    thread.join();
  runtime.stop();

  CHECK_EQ(sink.total(&KernelTotals::launches), 800);
  CHECK_EQ(sink.total(&KernelTotals::programs), 1600);
  CHECK_EQ(sink.total(&KernelTotals::unpaired_records), 0);
}

TEST(a_layout_that_cannot_be_read_is_refused) {
  auto kernel = std::make_shared<InstrumentedKernel>();
  kernel->name = "bad";
  kernel->scratch_bytes = 16;
  kernel->warps = 4;

  CHECK_THROWS(kernel->finish(), Error);
}
