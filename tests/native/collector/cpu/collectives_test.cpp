#include "collector/cpu/collectives.h"

#include <memory>
#include <thread>

#include "aggregate/consumer/aggregator.h"
#include "check.h"
#include "record/record_sink.h"
#include "session/session_registry.h"

namespace {

using proton::Aggregator;
using proton::CollectiveLog;

/// A session that records while this lives.
struct Recording {
  Recording() { core->activate(); }
  ~Recording() {
    core->deactivate();
    core->remove();
  }
  std::shared_ptr<proton::Session> core =
      proton::SessionRegistry::instance().add(proton::ContextSource::kShadow, false);
};

} // namespace

TEST(a_range_of_no_backend_is_no_collective) {
  CHECK(!proton::begin_collective("Optimizer.step#SGD", nullptr));
  CHECK(!proton::begin_collective("", nullptr));
}

TEST(work_that_is_done_elsewhere_ends_there) {
  CollectiveLog::instance().forget_calls();
  auto open = proton::begin_collective("gloo:all_reduce", nullptr);
  CHECK(open.has_value());
  CHECK_EQ(CollectiveLog::instance().contents().calls[0].end_ns, 0);

  std::thread([&] { proton::end_collective(*open); }).join();

  CollectiveLog::Contents contents = CollectiveLog::instance().contents();
  CHECK_EQ(contents.calls.size(), 1);
  CHECK(contents.calls[0].end_ns >= contents.calls[0].start_ns);
}

TEST(work_of_a_device_is_that_of_the_kernel_that_is_launched_meanwhile) {
  Recording session;
  CollectiveLog::instance().forget_calls();
  Aggregator &sink = Aggregator::instance();

  auto without = proton::begin_collective("nccl:all_reduce", nullptr);
  proton::end_collective(*without);
  auto open = proton::begin_collective("nccl:all_reduce", nullptr);
  uint64_t id = proton::next_correlation_id();
  sink.launched(id);
  proton::end_collective(*open);
  proton::KernelRecord kernel;
  kernel.correlation_id = id;
  kernel.name = "ncclDevKernel_AllReduce";
  kernel.start_ns = 1000;
  kernel.end_ns = 1500;
  sink.complete({&kernel, 1});

  CollectiveLog::Contents contents = CollectiveLog::instance().contents();
  CHECK_EQ(contents.calls.size(), 2);
  CHECK_EQ(contents.calls[0].end_ns, 0);
  CHECK_EQ(contents.calls[1].start_ns, 1000);
}

TEST(types_say_how_many_bytes_they_take) {
  CHECK_EQ(proton::bytes_of_type("f32"), 4);
  CHECK_EQ(proton::bytes_of_type("bf16"), 2);
  CHECK_EQ(proton::bytes_of_type("f8e4m3fn"), 1);
  CHECK_EQ(proton::bytes_of_type("c128"), 16);
  CHECK_EQ(proton::bytes_of_type("bool"), 1);
}
