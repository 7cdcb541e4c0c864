#include "collector/rocprofiler/rocprofiler_collector.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"
#include "collector/rocprofiler/rocprofiler_session.h"
#include "driver/hip/hip_abi.h"
#include "driver/own_work.h"
#include "driver/rocprofiler/rocprofiler_hip_calls.h"

using namespace proton;

TEST(kernels_stand_below_the_scopes_they_were_launched_in) {
  RocprofilerSession session;
  {
    ScopeGuard outer("outer");
    fake_amd_launch("add", 7);
    fake_amd_launch("add", 7);
    ScopeGuard inner("inner");
    fake_amd_launch("mul", 8);
  }
  session.stop();
  CHECK_EQ(session.tree(), "outer/inner/mul=1 outer/add=2 ");
  CHECK_EQ(session.tree("time (ns)"), "outer/inner/mul=1000 outer/add=2000 ");
  CHECK_EQ(session.lost(), 0);
  CHECK(session.counts().is_complete());
}

TEST(names_are_shown_as_they_are_in_cpp) {
  RocprofilerSession session;
  fake_amd_launch("_Z6matmulPfS_i", 7);
  session.stop();
  CHECK_EQ(session.tree(), "matmul(float*, float*, int)=1 ");
}

TEST(every_way_to_launch_is_seen) {
  RocprofilerSession session;
  for (uint32_t call = kFakeModuleLaunch; call <= kFakeExtLaunch; ++call) {
    FakeAmdLaunch launch;
    launch.call = call;
    ScopeGuard scope("s");
    fake_amd_launch_as(&launch);
  }
  session.stop();
  CHECK_EQ(session.tree(), "s/kernel=8 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(launches_of_programs_with_a_default_stream_per_thread_are_listened_to) {
  std::vector<int> traced = traced_operations(false);
  bool is_traced =
      std::find(traced.begin(), traced.end(), rocprofiler::kHipLaunchKernelSpt) != traced.end();
  CHECK(is_traced);
  int kernel = 0;
  int stream = 0;
  alignas(8) char payload[rocprofiler::kHipParameters + rocprofiler::kHipParametersBytes + 8] = {};
  rocprofiler::LaunchKernelParams launch{};
  launch.host_function = &kernel;
  auto read = [&] {
    std::memcpy(payload + rocprofiler::kHipParameters, &launch, sizeof launch);
    return read_hip_call(rocprofiler::kHipLaunchKernelSpt, payload);
  };
  CHECK(read().kind == HipCallKind::kKernel);
  CHECK(read().function == &kernel);
  CHECK_EQ(reinterpret_cast<uintptr_t>(read().stream), hip::kStreamPerThread);
  launch.stream = &stream;
  CHECK(read().stream == &stream);
}

TEST(copies_that_nobody_asked_for_are_not_recorded_and_not_asked_for_later) {
  RocprofilerSession session;
  fake_amd_copy(hip::kCopyHostToDevice, 4096, 7);
  fake_amd_set(64, 7); // by a kernel of HIP's own
  session.stop();
  CHECK_EQ(session.tree(), "");
  CHECK_EQ(session.lost(), 0);
  HipOptions options = rocprofiler_options();
  options.copies = true;
  CHECK(holds(error_of_starting<RocprofilerCollector>(options), "copies=on comes too late"));
}

TEST(failed_launches_are_taken_back) {
  RocprofilerSession session;
  fake_amd_failing_launch("broken", 700);
  fake_amd_launch("fine", 7);
  session.collector.flush();
  CHECK_EQ(session.counts().failed, 1);
  CHECK_EQ(session.counts().records, 1);
  session.stop();
  CHECK_EQ(session.tree(), "fine=1 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(each_thread_launches_in_its_own_scope) {
  RocprofilerSession session;
  constexpr int kThreads = 6, kLaunches = 500;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([number] {
      ScopeGuard scope(("thread " + std::to_string(number)).c_str());
      for (int i = 0; i < kLaunches; ++i)
        fake_amd_launch("k", 7);
    });
  for (std::thread &thread : threads)
    thread.join();
  session.stop();
  CHECK_EQ(session.counts().records, kThreads * kLaunches);
  CHECK_EQ(session.lost(), 0);
  for (int number = 0; number < kThreads; ++number)
    CHECK(holds(session.tree(), ("thread " + std::to_string(number) + "/k=500 ").c_str()));
}

TEST(a_flush_waits_for_work_that_runs) {
  RocprofilerSession session;
  fake_amd_hold(0);
  fake_amd_launch("slow", 7);
  session.collector.flush();
  CHECK_EQ(session.counts().records, 1);
  fake_amd_release(0);
  session.stop();
  CHECK_EQ(session.lost(), 0);
}

TEST(what_runs_between_sessions_belongs_to_nobody) {
  {
    RocprofilerSession first;
    fake_amd_launch("first", 7);
    first.stop();
    CHECK_EQ(first.tree(), "first=1 ");
  }
  fake_amd_launch("between", 7);
  RocprofilerSession second;
  fake_amd_launch("second", 7);
  second.stop();
  CHECK_EQ(second.tree(), "second=1 ");
  CHECK_EQ(second.lost(), 0);
}

TEST(a_collector_that_runs_is_not_started_again) {
  RocprofilerSession session;
  CHECK(holds(error_of_starting<RocprofilerCollector>(rocprofiler_options()), "runs already"));
  fake_amd_launch("k", 7);
  session.stop();
  CHECK_EQ(session.tree(), "k=1 ");
}

TEST(lost_records_are_counted_once) {
  RocprofilerSession session;
  fake_amd_drop(2);
  for (int i = 0; i < 5; ++i)
    fake_amd_launch("k", 7);
  session.collector.flush();
  session.stop();
  CHECK_EQ(session.tree(), "k=3 ");
  CHECK_EQ(session.lost(), 2);
}

TEST(a_kernel_of_unknown_code_is_shown_as_such) {
  RocprofilerSession session;
  fake_amd_hide_kernels(1);
  fake_amd_launch("never told of", 7);
  fake_amd_hide_kernels(0);
  session.stop();
  CHECK_EQ(session.tree(), "<kernel of unknown code>=1 ");
}

TEST(records_may_come_in_any_order) {
  RocprofilerSession session;
  fake_amd_shuffle(1);
  for (int i = 0; i < 3; ++i) {
    ScopeGuard scope(i == 0 ? "a" : "b");
    fake_amd_launch("k", 7);
  }
  session.collector.flush();
  fake_amd_shuffle(0);
  session.stop();
  CHECK_EQ(session.tree(), "a/k=1 b/k=2 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(correlation_ids_may_pass_what_32_bits_hold) {
  RocprofilerSession session;
  fake_amd_set_correlation(0xfffffffeull);
  for (int i = 0; i < 5; ++i)
    fake_amd_launch("k", 7);
  session.stop();
  CHECK_EQ(session.tree(), "k=5 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(work_of_the_profiler_is_shown_nowhere) {
  RocprofilerSession session;
  {
    OwnWork own;
    fake_amd_launch("ours", 7);
  }
  fake_amd_launch("theirs", 7);
  session.stop();
  CHECK_EQ(session.tree(), "theirs=1 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(ranges_of_roctx_are_scopes_where_asked_for) {
  HipOptions options = rocprofiler_options();
  for (bool ranges : {false, true}) {
    options.roctx = ranges;
    RocprofilerSession session(options);
    fake_amd_range_push("step");
    fake_amd_range_push("");
    fake_amd_launch("k", 7);
    fake_amd_range_pop();
    fake_amd_range_pop();
    fake_amd_range_pop(); // one too many
    fake_amd_launch("k", 7);
    session.stop();
    CHECK_EQ(session.tree(), ranges ? "step/<roctx range>/k=1 k=1 " : "k=2 ");
  }
}

TEST(facts_name_library_and_devices) {
  RocprofilerSession session;
  FakeAmdLaunch launch;
  launch.device = 1;
  fake_amd_launch_as(&launch);
  session.stop();
  HipFacts facts = session.collector.facts();
  CHECK_EQ(facts.library, std::getenv("PROTON_BENCH_ROCPROFILER_LIB"));
  CHECK(!facts.version.empty());
  CHECK_EQ(facts.devices.at(1).driver.device.arch, "gfx942");
  CHECK_EQ(facts.devices.at(1).driver.device.kind, "HIP");
}
