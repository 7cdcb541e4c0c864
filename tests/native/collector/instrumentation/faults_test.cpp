// Every call of the driver fails in turn: a clear error, or a loss that is counted.
#include "check.h"
#include "instrumented_launches.h"
#include "support/error.h"

using namespace launches;

namespace {

constexpr int kLaunches = 10;

struct Outcome {
  uint64_t errors = 0; ///< that a launch raised
  uint64_t recorded = 0;
  uint64_t timelines = 0;
  uint64_t lost = 0;
  bool is_clear = true; ///< errors name the call that failed
};

/// A session with launches on two streams and a flush in between; then the device is late, so that
/// buffers of timelines run out.
Outcome run(bool trace) {
  Listening listening;
  Outcome outcome;
  Sink sink;
  std::vector<std::unique_ptr<Played>> played;
  {
    InstrumentationRuntime runtime(sink, {size_t{1} << 30, ~size_t{0}, trace});
    runtime.start();
    runtime.add_kernel(7, make_kernel("matmul"));
    for (int i = 0; i < kLaunches; ++i) {
      try {
        played.push_back(launch_late(runtime, 7, i == 2 ? 300 : 4, 100, stream(i == 3 ? 2 : 1)));
      } catch (const Error &error) {
        ++outcome.errors;
        outcome.is_clear &= std::string(error.what()).find("fake CUDA error") != std::string::npos;
      }
      if (i == 1)
        runtime.flush();
      if (i == 3)
        fake_cuda_hold(stream(1));
    }
    fake_cuda_let_go(stream(1));
    runtime.stop();
  }
  outcome.recorded = sink.total(&KernelTotals::launches);
  outcome.timelines = sink.timelines.size();
  outcome.lost = sink.lost;
  return outcome;
}

void fail_each_call(bool trace) {
  uint64_t faults = 0;
  for (int code : {2, 700}) {
    for (uint64_t skip = 0; skip < 1000; ++skip) {
      fake_cuda_plan_fault(nullptr, code, skip);
      Outcome outcome = run(trace);
      bool has_failed = !fake_cuda_fault_waits();
      fake_cuda_plan_fault(nullptr, 0, 0);
      if (!has_failed) {
        CHECK_EQ(outcome.recorded, kLaunches);
        break;
      }
      ++faults;
      CHECK(outcome.is_clear);
      bool is_whole = outcome.recorded == kLaunches;
      if (!is_whole && outcome.errors + outcome.lost == 0)
        CHECK_EQ(skip, 1000); // shows which call it was
      CHECK(outcome.recorded + outcome.errors + outcome.lost >= kLaunches);
      if (trace)
        CHECK(outcome.timelines + outcome.errors + outcome.lost >= kLaunches);
    }
  }
  CHECK(faults > 60);
}

} // namespace

TEST(each_failing_call_is_an_error_or_a_counted_loss) { fail_each_call(false); }

TEST(each_failing_call_of_a_timeline_is_an_error_or_a_counted_loss) { fail_each_call(true); }

TEST(a_driver_that_does_not_load_the_kernels_is_named_at_the_launch) {
  Listening listening;
  Sink sink;
  InstrumentationRuntime runtime(sink, {});
  runtime.start();
  fake_cuda_plan_fault("cuModuleLoadData", 218, 0);
  std::string message;
  try {
    runtime.allocate(kScratchBytes, stream(1));
  } catch (const Error &error) {
    message = error.what();
  }

  CHECK(message.find("cuModuleLoadData") != std::string::npos);
  CHECK(message.find("218") != std::string::npos);
  runtime.allocate(kScratchBytes, stream(1)); // the next one may find it working
  runtime.stop();
}
