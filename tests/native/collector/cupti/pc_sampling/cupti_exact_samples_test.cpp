// Samples during an open scope or launch belong to it only.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"
#include "collector/cupti/pc_sampling/cupti_samples.h"

using namespace proton;

TEST(a_scope_has_the_samples_of_its_own_launches) {
  CuptiSession session(sampling_options(PcSamplingMode::kScope));
  run("k"); // in no scope: not sampled
  for (const char *name : {"first", "second"}) {
    ScopeGuard outer(name);
    run("k");
    ScopeGuard inner("inner");
    run("k", std::string(name) == "first" ? 1000 : 7000);
  }
  run("k");
  session.stop();
  CHECK_EQ(sum(session, "num_samples"), 4 * 125 + 750);
  CHECK_EQ(sum(session, "num_samples", "first/"), 250);
  CHECK_EQ(sum(session, "num_samples", "second/"), 1000);
  CHECK(std::abs(sum(session, "num_samples", "second/inner/") - 875) <= 1);
  CHECK_EQ(session.collector.facts().pc_sampling->attribution, "exact by scope");
  CHECK_EQ(session.lost(), 0);
}

TEST(scopes_of_threads_that_overlap_are_one_range) {
  CuptiSession session(sampling_options(PcSamplingMode::kScope));
  constexpr int kThreads = 4, kRounds = 30;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([] {
      for (int i = 0; i < kRounds; ++i) {
        ScopeGuard scope("step");
        run("k");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  session.stop();
  CHECK_EQ(sum(session, "num_samples"), kThreads * kRounds * 125);
  CHECK_EQ(sum(session, "num_samples", "step/"), kThreads * kRounds * 125);
}

TEST(a_scope_that_was_open_before_begins_no_range) {
  CuptiSession outer;
  {
    ScopeGuard scope("open");
    outer.stop();
    CuptiSession session(sampling_options(PcSamplingMode::kScope));
    run("k");
    session.collector.flush();
    CHECK_EQ(sum(session, "num_samples"), 0);
  }
}

TEST(a_scope_that_was_open_before_ends_no_range_of_another_thread) {
  CuptiSession outer;
  std::atomic<int> step{0};
  std::thread older([&] {
    {
      ScopeGuard scope("older");
      step = 1;
      while (step != 2)
        std::this_thread::yield();
    }
    step = 3;
  });
  while (step != 1)
    std::this_thread::yield();
  outer.stop();
  CuptiSession session(sampling_options(PcSamplingMode::kScope));
  {
    ScopeGuard scope("s");
    run("k");
    step = 2;
    while (step != 3)
      std::this_thread::yield();
    run("k");
  }
  session.stop();
  older.join();
  CHECK_EQ(sum(session, "num_samples", "s/"), 250);
}

TEST(a_stop_within_a_scope_keeps_what_was_sampled) {
  CuptiSession session(sampling_options(PcSamplingMode::kScope));
  {
    ScopeGuard scope("open");
    run("k");
    session.stop();
  }
  CHECK_EQ(sum(session, "num_samples", "open/"), 125);
  CHECK_EQ(fake_cupti_pc_period(1), 0);
}

TEST(a_scope_within_a_capture_does_not_end_it) {
  CuptiSession session(sampling_options(PcSamplingMode::kScope));
  fake_cupti_capture_begin(7);
  {
    ScopeGuard scope("captured");
    run("k");
  }
  uint32_t graph = fake_cupti_capture_end(7);
  CHECK(graph != 0);
  session.stop();
  CHECK_EQ(session.lost(), 0);
}

TEST(a_launch_has_its_samples_wherever_the_kernel_runs_besides) {
  fake_cupti_pc_module("k", 31);
  CuptiSession session(sampling_options(PcSamplingMode::kLaunch));
  fake_cupti_module_loaded(31, 31, 64);
  {
    ScopeGuard scope("short");
    run("k", 1000);
  }
  {
    ScopeGuard scope("long");
    run("k", 9000);
  }
  session.stop();
  CHECK_EQ(sum(session, "num_samples", "short/k/"), 125);
  CHECK_EQ(sum(session, "num_samples", "long/k/"), 1125);
  CHECK_EQ(session.tree(), "short/k=1 long/k=1 ");
  CHECK_EQ(session.collector.facts().pc_sampling->attribution, "exact by launch");
  CHECK_EQ(session.lost(), 0);
}

TEST(launches_of_threads_take_turns) {
  CuptiSession session(sampling_options(PcSamplingMode::kLaunch));
  constexpr int kThreads = 4, kLaunches = 50;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([number] {
      std::string name = "thread_" + std::to_string(number);
      ScopeGuard scope(name.c_str());
      for (int i = 0; i < kLaunches; ++i)
        run("k");
    });
  for (std::thread &thread : threads)
    thread.join();
  session.stop();
  for (int number = 0; number < kThreads; ++number)
    CHECK_EQ(sum(session, "num_samples", "thread_" + std::to_string(number) + "/"),
             kLaunches * 125);
  CHECK_EQ(session.lost(), 0);
}

TEST(kernels_of_a_graph_share_by_time_in_mode_launch) {
  CuptiSession session(sampling_options(PcSamplingMode::kLaunch));
  fake_cupti_capture_begin(7);
  run("one");
  run("two", 3000);
  uint32_t graph = fake_cupti_capture_end(7);
  uint32_t executable = fake_cupti_graph_instantiate(graph);
  {
    ScopeGuard scope("replay");
    fake_cupti_graph_launch(executable, 7);
  }
  run("one");
  session.stop();
  CHECK(graph != 0);
  // One sample in two of the graph's "one" may be of the launch: both took as long. Parts of issues
  // and of what was not issued are rounded each, and the second count twice.
  CHECK(sum(session, "num_samples", "one") >= 125);
  CHECK(sum(session, "num_samples", "one") <= 125 + 63 + 2);
  CHECK_EQ(sum(session, "num_samples"), 125 + 125 + 375);
  CHECK(sum(session, "num_samples", "replay/") >= 375 + 62 - 2);
  CHECK_EQ(session.lost(), 0);
}

TEST(a_failing_start_leaves_launches_and_scopes_alone) {
  for (PcSamplingMode mode : {PcSamplingMode::kLaunch, PcSamplingMode::kScope}) {
    CuptiSession session(sampling_options(mode));
    fake_cupti_fail("cuptiPCSamplingStart=999");
    {
      ScopeGuard scope("s");
      run("k");
    }
    fake_cupti_fail(nullptr);
    {
      ScopeGuard scope("t");
      run("k");
    }
    session.stop();
    CHECK_EQ(session.lost("failed call for PC samples"), 1);
    CHECK_EQ(session.tree(), "s/k=1 t/k=1 ");
    CHECK_EQ(sum(session, "num_samples", "t/"), 125);
  }
}
