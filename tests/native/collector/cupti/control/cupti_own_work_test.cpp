// The profiler's own work between the target's: it is in no tree and not counted as lost.
#include <thread>

#include "check.h"
#include "collector/cupti/callbacks/cupti_graph_launches.h"
#include "collector/instrumentation/device/device_code.h"
#include "driver/cupti/cupti_abi.h"
#include "driver/own_work.h"

using namespace proton;

namespace {

void launch_own(const char *name) {
  OwnWork own;
  fake_cupti_launch(name, 7);
}

} // namespace

TEST(own_launches_are_not_shown) {
  CuptiSession session;
  {
    ScopeGuard guard("step");
    for (int i = 0; i < 3; ++i) {
      fake_cupti_launch("steps", 7);
      launch_own(kReduceFunction);
    }
    ScopeGuard nothing_else("flush");
    launch_own("any name");
  }
  session.stop();
  CHECK_EQ(session.tree(), "step/steps=3 ");
  CHECK_EQ(session.losses(), "");
  CHECK_EQ(session.counts().launches, 3);
  CHECK_EQ(session.counts().records, 3);
  CHECK(session.counts().is_complete());
  CHECK_EQ(Aggregator::Held().launches().size(), 0);
}

TEST(own_launches_that_outlast_a_flush_are_known_afterwards) {
  CuptiSession session;
  fake_cupti_hold(1);
  launch_own(kReduceFunction);
  fake_cupti_launch("steps", 7);
  session.collector.flush();
  fake_cupti_release(1);
  launch_own(kHarvestFunction);
  session.collector.flush();
  session.stop();
  CHECK_EQ(session.tree(), "steps=1 ");
  CHECK_EQ(session.losses(), "");
  CHECK(session.counts().is_complete());
}

TEST(own_launches_that_fail_are_not_counted) {
  CuptiSession session;
  {
    OwnWork own;
    fake_cupti_failing_launch("broken", 700);
  }
  session.stop();
  CHECK_EQ(session.counts().failed, 0);
  CHECK_EQ(session.counts().launches, 0);
  CHECK_EQ(session.losses(), "");
}

TEST(own_copies_are_not_shown) {
  CuptiOptions options = double_options();
  options.copies = true;
  CuptiSession session(options);
  {
    OwnWork own;
    fake_cupti_copy(cupti::kCopyDeviceToHost, 100, 7);
    fake_cupti_set(64, 7);
  }
  fake_cupti_copy(cupti::kCopyHostToDevice, 4096, 7);
  session.stop();
  CHECK_EQ(session.tree("bytes"), "<memcpy H2D>=4096 ");
  CHECK_EQ(session.losses(), "");
  CHECK(session.counts().is_complete());
}

TEST(only_the_thread_that_says_so_works_for_the_profiler) {
  CuptiSession session;
  OwnWork own;
  std::thread([] { fake_cupti_launch("theirs", 7); }).join();
  {
    OwnWork nested;
    fake_cupti_launch("ours", 7);
  }
  fake_cupti_launch("ours", 7);
  session.stop();
  CHECK_EQ(session.tree(), "theirs=1 ");
  CHECK_EQ(session.losses(), "");
}

TEST(own_nodes_of_graphs_are_awaited_and_not_shown) {
  NothingIsLeft after;
  CuptiSession session;
  fake_cupti_capture_begin(7);
  {
    ScopeGuard guard("capture");
    fake_cupti_launch("steps", 7);
    launch_own(kReduceFunction);
  }
  uint32_t executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  launch("replay", executable, 2);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/capture/steps=2 ");
  CHECK_EQ(session.losses(), "");
  CHECK_EQ(session.counts().records, 2);
  CHECK(session.counts().is_complete());
}

TEST(launches_of_graphs_are_the_targets) {
  NothingIsLeft after;
  CuptiSession session;
  uint32_t executable = fake_cupti_graph_instantiate(captured("capture", {"steps"}));
  OwnWork own;
  launch("replay", executable);
  session.stop();
  CHECK_EQ(session.tree(), "replay/<captured_at>/capture/steps=1 ");
  CHECK_EQ(session.losses(), "");
}

TEST(kernels_of_the_runtime_are_known_by_name) {
  for (const char *name : {kReduceFunction, kHarvestFunction, kAnchorFunction})
    CHECK(is_own_kernel(name));
  CHECK(!is_own_kernel("steps"));
}
