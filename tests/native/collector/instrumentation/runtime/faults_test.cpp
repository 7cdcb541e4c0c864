// Every call of the driver fails in turn: a clear error, or a loss that is counted.
#include "check.h"
#include "collector/instrumentation/runtime/instrumented_launches.h"
#include "support/error.h"
#include "sweeps.h"

using namespace launches;

namespace {

struct Outcome {
  uint64_t launches = 0;
  uint64_t errors = 0; ///< that a launch raised
  uint64_t recorded = 0;
  uint64_t timelines = 0;
  uint64_t lost = 0;
  bool is_clear = true; ///< errors name the call that failed
};

/// A runtime whose launches may raise, and their results.
class Faulty {
public:
  explicit Faulty(bool timeline) : runtime(sink_, {size_t{1} << 30, ~size_t{0}, timeline}) {
    runtime.start();
    runtime.add_kernel(7, make_kernel("matmul"));
  }
  void launch(uint32_t programs, void *on) {
    ++outcome_.launches;
    try {
      played_.push_back(launch_late(runtime, 7, programs, 100, on));
    } catch (const Error &error) {
      ++outcome_.errors;
      outcome_.is_clear &= std::string(error.what()).find("fake CUDA error") != std::string::npos;
    }
  }
  Outcome stop() {
    runtime.stop();
    outcome_.recorded = sink_.total(&KernelTotals::launches);
    outcome_.timelines = sink_.timelines.size();
    outcome_.lost = sink_.lost;
    return outcome_;
  }

private:
  Listening listening_;
  Sink sink_;
  Outcome outcome_;
  std::vector<std::unique_ptr<Played>> played_;

public:
  InstrumentationRuntime runtime;
};

/// Launches on two streams, and a flush in between.
Outcome run(bool timeline) {
  Faulty faulty(timeline);
  faulty.launch(4, stream(1));
  faulty.launch(4, stream(1));
  faulty.runtime.flush();
  faulty.launch(300, stream(1));
  faulty.launch(4, stream(2));
  return faulty.stop();
}

/// The device is late, so that a stream runs out of buffers.
Outcome run_late(bool timeline) {
  Faulty faulty(timeline);
  fake_cuda_hold(stream(1));
  for (size_t i = 0; i <= ScratchPool::kMostCopied; ++i)
    faulty.launch(4, stream(1));
  fake_cuda_let_go(stream(1));
  return faulty.stop();
}

void fail_each_call(Outcome (*run)(bool), bool timeline) {
  // Odd, so that both errors take turns.
  const auto stride = static_cast<uint64_t>(how_many(1, 3));
  uint64_t faults = 0;
  for (uint64_t skip = 0; skip < 1000; skip += stride) {
    fake_cuda_plan_fault(nullptr, skip % 2 == 0 ? 2 : 700, skip);
    Outcome outcome = run(timeline);
    bool has_failed = !fake_cuda_fault_waits();
    fake_cuda_plan_fault(nullptr, 0, 0);
    if (!has_failed) {
      CHECK_EQ(outcome.recorded, outcome.launches);
      break;
    }
    ++faults;
    CHECK(outcome.is_clear);
    bool is_whole = outcome.recorded == outcome.launches;
    if (!is_whole && outcome.errors + outcome.lost == 0)
      CHECK_EQ(skip, 1000); // shows which call it was
    CHECK(outcome.recorded + outcome.errors + outcome.lost >= outcome.launches);
    if (timeline)
      CHECK(outcome.timelines + outcome.errors + outcome.lost >= outcome.launches);
  }
  CHECK(faults > 30 / stride);
}

} // namespace

TEST(each_failing_call_is_an_error_or_a_counted_loss) { fail_each_call(run, false); }

TEST(each_failing_call_of_a_timeline_is_an_error_or_a_counted_loss) { fail_each_call(run, true); }

TEST(each_failing_call_is_an_error_or_a_counted_loss_when_buffers_run_out) {
  fail_each_call(run_late, true);
}

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
