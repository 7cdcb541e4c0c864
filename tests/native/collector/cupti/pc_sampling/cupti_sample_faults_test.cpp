// Every entry point that samples program counters fails in turn: a start says so and leaves
// nothing on, and later failures are counted.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "check.h"
#include "collector/cupti/pc_sampling/cupti_samples.h"
#include "collector/gpu/launches/launch_thread.h"
#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_records.h"
#include "support/error.h"

using namespace proton;

TEST(a_start_that_fails_says_where_and_leaves_nothing_on) {
  for (const char *function :
       {"cuptiPCSamplingEnable", "cuptiPCSamplingGetNumStallReasons",
        "cuptiPCSamplingGetStallReasons", "cuptiPCSamplingSetConfigurationAttribute",
        "cuptiPCSamplingStart"}) {
    fake_cupti_fail((std::string(function) + "=999").c_str());
    std::string error = error_of_start(sampling_options());
    fake_cupti_fail(nullptr);
    CHECK(holds(error, function));
    CHECK(holds(error, "999"));
    CHECK_EQ(fake_cupti_pc_period(1), 0);
    CHECK_EQ(fake_cupti_is_kind_enabled(cupti::kKindConcurrentKernel), 0);
    CHECK_EQ(error_of_start(sampling_options()), ""); // and the next start works
  }
}

TEST(missing_privileges_and_other_samplers_are_explained) {
  struct Case {
    const char *fault;
    const char *advice;
  };
  for (Case each : {Case{"cuptiPCSamplingEnable=35", "NVreg_RestrictProfilingToAdminUsers=0"},
                    Case{"cuptiPCSamplingEnable=26", "another process samples this GPU"},
                    Case{"cuptiPCSamplingEnable=14", "end that tool first"}}) {
    fake_cupti_fail(each.fault);
    std::string error = error_of_start(sampling_options());
    fake_cupti_fail(nullptr);
    CHECK(holds(error, each.advice));
  }
}

TEST(hardware_that_another_program_gives_up_is_waited_for) {
  uint64_t calls = fake_cupti_calls("cuptiPCSamplingEnable");
  std::string faults;
  for (uint64_t call = calls + 1; call <= calls + 3; ++call)
    faults += "cuptiPCSamplingEnable@" + std::to_string(call) + "=26,";
  fake_cupti_fail(faults.c_str());
  CHECK_EQ(error_of_start(sampling_options()), "");
  fake_cupti_fail(nullptr);
  CHECK_EQ(fake_cupti_calls("cuptiPCSamplingEnable"), calls + 4);
}

TEST(another_profiler_is_not_detached) {
  CHECK_EQ(error_of_start(sampling_options()), "");
  uint64_t before = fake_cupti_calls("cuptiFinalize");
  fake_cupti_other_subscriber("other"); // between two sessions
  CHECK(error_of_start(sampling_options()) != "");
  fake_cupti_other_subscriber(nullptr);
  CHECK_EQ(fake_cupti_calls("cuptiFinalize"), before);
  CHECK_EQ(error_of_start(sampling_options()), "");
}

TEST(kernel_activity_is_enabled_first) {
  CuptiSession session(sampling_options());
  const CuptiLibrary library = CuptiLibrary::open(double_options().candidates);
  CHECK_EQ(library.functions().activity_enable(cupti::kKindConcurrentKernel),
           cupti::kErrorNotCompatible); // which is how the double would have refused
  run("k");
  session.stop();
  CHECK_EQ(session.tree(), "k=1 ");
  CHECK_EQ(session.tree("num_samples"), "k=125 ");
}

TEST(a_context_that_cannot_be_sampled_is_counted_once) {
  CuptiSession session(sampling_options());
  fake_cupti_fail("cuptiPCSamplingEnable=35");
  fake_cupti_context_created(2);
  run("k", 1000, 2);
  session.collector.flush();
  session.collector.flush();
  fake_cupti_fail(nullptr);
  run("k");
  session.stop();
  PcSamplingFacts facts = *session.collector.facts().pc_sampling;
  CHECK_EQ(session.lost("context that could not be sampled"), 1);
  CHECK_EQ(facts.refused_contexts, 1);
  CHECK(holds(facts.error, "NVreg_RestrictProfilingToAdminUsers=0"));
  CHECK_EQ(sum(session, "num_samples"), 125);
}

TEST(failures_while_sampling_are_counted) {
  for (const char *fault : {"cuptiPCSamplingGetData=999", "cuptiPCSamplingDisable=999"}) {
    {
      CuptiSession session(sampling_options());
      run("k");
      fake_cupti_fail(fault);
      session.collector.flush();
      session.stop();
      fake_cupti_fail(nullptr);
      CHECK(session.lost("failed call for PC samples") != 0);
      CHECK(holds(session.collector.facts().pc_sampling->error, "999"));
      CHECK_EQ(session.tree(), "k=1 ");
    }
    fake_cupti_context_destroyed(1); // what the failing call left on in the double
  }
}

TEST(a_period_that_cannot_be_doubled_ends_sampling_of_the_context) {
  CuptiOptions options = sampling_options();
  options.pc_sampling.drain_ms = 50;
  CuptiSession session(options);
  fake_cupti_fail("cuptiPCSamplingEnable=999");
  run("before", 1'000'000); // which are still taken over
  fake_cupti_pc_overrun(1);
  while (session.lost("context that could not be sampled") == 0)
    std::this_thread::yield();
  fake_cupti_fail(nullptr);
  run("k");
  session.stop();
  CHECK_EQ(session.tree(), "before=1 k=1 ");
  CHECK_EQ(session.tree("num_samples"), "before=125000 ");
  CHECK_EQ(session.lost("context that could not be sampled"), 1);
  PcSamplingFacts facts = *session.collector.facts().pc_sampling;
  CHECK_EQ(facts.total, facts.samples + facts.not_issued);
}

TEST(lines_that_cannot_be_found_leave_samples_with_the_kernel) {
  fake_cupti_pc_module("k", 12);
  CuptiSession session(sampling_options());
  fake_cupti_fail("cuptiGetSassToSourceCorrelation=24");
  fake_cupti_module_loaded(12, 12, 64);
  run("k");
  session.stop();
  fake_cupti_fail(nullptr);
  CHECK_EQ(session.tree("num_samples"), "k=125 ");
}

TEST(a_child_of_fork_ends_without_sampling) {
  CuptiSession session(sampling_options(PcSamplingMode::kScope));
  {
    ScopeGuard scope("parent");
    run("k");
    pid_t child = fork();
    if (child == 0) {
      SessionRegistry &sessions = CuptiSession::sessions();
      std::shared_ptr<Session> own = sessions.add(ContextSource::kShadow, false);
      own->activate();
      {
        ScopeGuard inner("child");
      }
      session.collector.flush();
      session.collector.stop();
      _exit(tree_text(*own).find("child") != std::string::npos ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  }
  session.stop();
  CHECK_EQ(sum(session, "num_samples", "parent/"), 125);
}

TEST(a_child_of_fork_is_not_held_back) {
  CuptiSession session(sampling_options());
  std::atomic<bool> is_held{false}, is_over{false};
  std::thread holder([&] {
    LaunchHold hold(1000);
    is_held = true;
    while (!is_over)
      std::this_thread::yield();
  });
  while (!is_held)
    std::this_thread::yield();
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    run("k");
    _exit(LaunchHold::is_set() ? 1 : 0);
  }
  is_over = true;
  holder.join();
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}
