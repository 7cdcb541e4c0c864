// Launches that are captured into graphs, on the double of libcuda.
#include "check.h"
#include "collector/instrumentation/runtime/instrumented_launches.h"
#include "support/error.h"

using namespace launches;

namespace {

struct Captured {
  unsigned long long graph;
  cuda::DevicePointer buffer;
};

Captured capture_launch(InstrumentationRuntime &runtime, uint32_t programs) {
  unsigned long long graph = fake_cuda_begin_capture(stream(1));
  cuda::DevicePointer buffer = runtime.allocate(size_t{programs} * kScratchBytes, stream(1));
  runtime.launched(7, stream(1));
  CHECK(fake_cuda_end_capture());
  return {graph, buffer};
}

void replay(const Captured &captured, uint32_t programs) {
  play(captured.buffer, programs, 1, 100);
  fake_cuda_replay(captured.graph);
}

} // namespace

TEST(each_replay_of_a_graph_adds_to_its_totals) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  Captured captured = capture_launch(runtime, 4);
  runtime.flush();
  CHECK_EQ(sink.cycles.size(), 0);

  for (int i = 0; i < 5; ++i)
    replay(captured, 4);
  runtime.flush();
  replay(captured, 4);
  runtime.stop();

  CHECK_EQ(sink.cycles.size(), 2);
  CHECK_EQ(sink.cycles[0].totals.launches, 5);
  CHECK_EQ(sink.cycles[0].scopes[1].count, 40);
  CHECK_EQ(sink.cycles[1].totals.launches, 1);
}

TEST(a_graph_keeps_its_buffer_to_itself) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  Captured first = capture_launch(runtime, 4);
  Captured second = capture_launch(runtime, 4);

  cuda::DevicePointer plain = runtime.allocate(4 * kScratchBytes, stream(1));
  runtime.launched(7, stream(1));

  CHECK(first.buffer != second.buffer);
  CHECK(plain != first.buffer && plain != second.buffer);
  runtime.stop();
}

TEST(a_graph_may_be_launched_after_the_end) {
  Listening listening;
  size_t before = fake_cuda_allocations();
  Sink sink;
  Captured captured{};
  {
    InstrumentationRuntime runtime(sink, {});
    runtime.start();
    runtime.add_kernel(7, make_kernel("matmul"));
    launch(runtime, 7, 4, 100);
    captured = capture_launch(runtime, 4);
    runtime.stop();
    CHECK(runtime.facts().graph_bytes > 0);
  }

  replay(captured, 4); // its memory is still there

  CHECK_EQ(fake_cuda_allocations(), before + 3); // buffer, totals and their copy
}

TEST(a_capture_that_is_open_is_not_broken) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  launch(runtime, 7, 4, 100, stream(2));
  fake_cuda_begin_capture(stream(1));
  runtime.allocate(4 * kScratchBytes, stream(1));
  runtime.launched(7, stream(1));

  runtime.flush();

  CHECK(fake_cuda_end_capture());
  CHECK_EQ(sink.total(&KernelTotals::launches), 1);
  runtime.stop();
}

TEST(capturing_allocates_nothing_on_the_captured_stream) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  Captured captured = capture_launch(runtime, 4);
  play(captured.buffer, 4, 1, 100);
  uint64_t clears = fake_cuda_calls("cuMemsetD8Async");

  fake_cuda_replay(captured.graph);

  CHECK_EQ(fake_cuda_calls("cuMemsetD8Async"), clears);
  runtime.stop();
  CHECK_EQ(sink.total(&KernelTotals::programs), 4);
}

TEST(a_timeline_refuses_graphs_and_says_so) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {1 << 20, ~size_t{0}, true});
  runtime.start();
  runtime.add_kernel(7, make_kernel("matmul"));
  fake_cuda_begin_capture(stream(1));
  std::string message;
  try {
    runtime.allocate(kScratchBytes, stream(1));
  } catch (const Error &error) {
    message = error.what();
  }
  fake_cuda_end_capture();

  CHECK(message.find("CUDA graph") != std::string::npos);
  CHECK(message.find("data=\"tree\"") != std::string::npos);
  runtime.stop();
}
