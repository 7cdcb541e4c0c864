#include "collector/roctracer/roctracer_collector.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "check.h"
#include "collector/roctracer/roctracer_session.h"
#include "driver/hip/hip_abi.h"

using namespace proton;

TEST(a_pool_that_does_not_open_is_an_error_of_the_start) { // it is opened once in a process
  fake_amd_fail("roctracer_open_pool_expl=-6");
  CHECK(holds(error_of_starting<RoctracerCollector>(roctracer_options()),
              "roctracer_open_pool_expl"));
  fake_amd_fail(nullptr);
}

TEST(what_is_launched_and_copied_stands_below_its_scope) {
  HipOptions options = roctracer_options();
  options.copies = true;
  RoctracerSession session(options);
  {
    ScopeGuard scope("step");
    for (uint32_t call = kFakeModuleLaunch; call <= kFakeExtLaunch; ++call) {
      FakeAmdLaunch launch;
      launch.call = call;
      fake_amd_launch_as(&launch);
    }
    fake_amd_copy(hip::kCopyHostToDevice, 4096, 7);
    fake_amd_set(64, 7);
  }
  session.stop();
  CHECK_EQ(session.tree(), "step/kernel=8 step/<memcpy H2D>=1 step/<memset>=1 ");
  CHECK_EQ(session.tree("bytes"), "step/<memcpy H2D>=4096 step/<memset>=64 ");
  CHECK_EQ(session.lost(), 0);
  CHECK(session.counts().is_complete());
}

TEST(sessions_follow_each_other_with_other_options) {
  {
    HipOptions options = roctracer_options();
    options.copies = true;
    RoctracerSession first(options);
    fake_amd_launch("first", 7);
  }
  fake_amd_launch("between", 7);
  RoctracerSession second;
  fake_amd_copy(hip::kCopyHostToDevice, 4096, 7);
  fake_amd_launch("second", 7);
  second.stop();
  CHECK_EQ(second.tree(), "second=1 ");
  CHECK_EQ(second.lost(), 0);
  CHECK_EQ(fake_amd_is_traced("hipModuleLaunchKernel"), 0);
}

TEST(threads_launch_in_their_own_scopes) {
  RoctracerSession session;
  std::vector<std::thread> threads;
  for (const char *name : {"a", "b", "c", "d"})
    threads.emplace_back([name] {
      ScopeGuard scope(name);
      for (int i = 0; i < 300; ++i)
        fake_amd_launch("k", 7);
    });
  for (std::thread &thread : threads)
    thread.join();
  session.collector.flush();
  session.stop();
  for (const char *path : {"a/k=300 ", "b/k=300 ", "c/k=300 ", "d/k=300 "})
    CHECK(holds(session.tree(), path));
  CHECK_EQ(session.lost(), 0);
}

TEST(ranges_of_roctx_are_scopes) {
  HipOptions options = roctracer_options();
  options.roctx = true;
  RoctracerSession session(options);
  fake_amd_range_push("step");
  fake_amd_launch("k", 7);
  fake_amd_range_pop();
  session.stop();
  CHECK_EQ(session.tree(), "step/k=1 ");
}

TEST(nodes_of_graphs_are_found_by_name_where_records_tell_no_shape) {
  RoctracerSession session;
  fake_amd_capture_begin(7);
  for (const char *name : {"a", "b", "a"}) {
    ScopeGuard scope(name);
    FakeAmdLaunch launch;
    launch.name = name;
    launch.grid[0] = 4;
    fake_amd_launch_as(&launch);
  }
  uint32_t exec = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  for (int i = 0; i < 100; ++i)
    fake_amd_graph_launch(exec, 7);
  fake_amd_graph_order(1);
  fake_amd_graph_launch(exec, 7);
  fake_amd_graph_order(0);
  session.stop();
  CHECK_EQ(session.tree(), "<captured_at>/a/a=202 <captured_at>/b/b=101 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(graphs_are_followed_between_sessions) {
  uint32_t seen = 0;
  {
    RoctracerSession session;
    fake_amd_capture_begin(7);
    ScopeGuard scope("seen");
    fake_amd_launch("k", 7);
    seen = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  }
  fake_amd_capture_begin(7);
  fake_amd_launch("k", 7);
  uint32_t unseen = fake_amd_graph_instantiate(fake_amd_capture_end(7));
  RoctracerSession session;
  for (uint32_t exec : {seen, unseen}) {
    ScopeGuard scope(exec == seen ? "old" : "new");
    fake_amd_graph_launch(exec, 7);
  }
  session.stop();
  CHECK(holds(session.tree(), "new/<captured_at>/k=1 "));
  CHECK(holds(session.tree(), "old/<captured_at>/"));
  CHECK_EQ(session.lost(), 0);
}

TEST(devices_are_those_of_hip) {
  RoctracerSession session;
  FakeAmdLaunch launch;
  launch.device = 1;
  fake_amd_launch_as(&launch);
  session.stop();
  HipFacts facts = session.collector.facts();
  CHECK_EQ(facts.library, std::getenv("PROTON_BENCH_ROCTRACER_LIB"));
  CHECK_EQ(facts.devices.at(1).driver.device.arch, "gfx942");
}

TEST(a_start_that_fails_says_where_and_leaves_nothing_on) {
  HipOptions options = roctracer_options();
  options.roctx = true;
  for (const char *function : {"roctracer_enable_op_callback", "roctracer_enable_domain_callback",
                               "roctracer_enable_domain_activity_expl"}) {
    fake_amd_fail((std::string(function) + "=-6").c_str());
    std::string error = error_of_starting<RoctracerCollector>(options);
    fake_amd_fail(nullptr);
    CHECK(holds(error, function));
    CHECK_EQ(fake_amd_is_traced("hipModuleLaunchKernel"), 0);
    CHECK_EQ(error_of_starting<RoctracerCollector>(options), "");
  }
}

TEST(calls_that_fail_later_are_counted_or_harmless) {
  for (const char *function :
       {"roctracer_flush_activity_expl", "roctracer_next_record", "roctracer_get_timestamp",
        "roctracer_disable_op_callback", "roctracer_disable_domain_activity", "hipSetDevice",
        "hipDeviceSynchronize", "hsa_init"}) {
    RoctracerSession session;
    fake_amd_fail((std::string(function) + "=1").c_str());
    for (int i = 0; i < 3; ++i)
      fake_amd_launch("k", 7);
    session.collector.flush();
    session.stop();
    fake_amd_fail(nullptr);
    bool is_accounted = session.counts().records + session.lost() >= 3;
    CHECK_EQ(std::string(is_accounted ? "" : function), "");
    error_of_starting<RoctracerCollector>(
        roctracer_options()); // what failed to be off goes off now
  }
}

TEST(records_that_roctracer_hands_over_in_a_forked_child_are_left_aside) {
  RoctracerSession session;
  fake_amd_launch("k", 7);
  pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 50'000; ++i) // full buffers are handed over
      fake_amd_launch("in the child", 7);
    _exit(session.counts().records == 0 ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  session.stop();
  CHECK_EQ(session.tree(), "k=1 ");
}
