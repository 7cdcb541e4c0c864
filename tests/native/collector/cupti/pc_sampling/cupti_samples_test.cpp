// Continuous samples of program counters all arrive, below their kernels.
#include "collector/cupti/pc_sampling/cupti_samples.h"

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"
#include "collector/cupti/pc_sampling/pc_context.h"
#include "collector/gpu/launches/launch_thread.h"
#include "support/error.h"

using namespace proton;

TEST(every_sample_is_below_its_kernel) {
  MadeSamples made;
  CuptiSession session(sampling_options());
  run("add");
  run("mul", 3000);
  session.stop();
  PcSamplingFacts facts = *session.collector.facts().pc_sampling;
  CHECK(made.stalled() > 300);
  CHECK(made.not_issued() > 100);
  CHECK_EQ(sum(session, "num_stalled_samples"), made.stalled());
  CHECK_EQ(sum(session, "num_samples"), made.stalled() + made.not_issued());
  CHECK_EQ(facts.samples, made.stalled());
  CHECK_EQ(facts.not_issued, made.not_issued());
  CHECK_EQ(facts.total, made.stalled() + made.not_issued());
  CHECK_EQ(facts.contexts, 1);
  CHECK_EQ(facts.period_cycles, 32);
  CHECK_EQ(facts.attribution, "estimated by GPU time");
  CHECK(!facts.is_automatic);
  CHECK_EQ(sum(session, "num_samples", "add"), 125);
  CHECK_EQ(sum(session, "num_samples", "mul"), 375);
  CHECK_EQ(session.lost(), 0);
  CHECK_EQ(session.tree(), "add=1 mul=1 ");
}

TEST(reasons_have_upstreams_names_and_others_their_own) {
  CuptiSession session(sampling_options());
  run("reasons", 10'000);
  session.stop();
  int64_t of_reasons = 0;
  for (const char *reason : {"stalled_wait", "stalled_long_scoreboard", "stalled_selected",
                             "stalled_not_selected", "stalled_gmma"}) {
    CHECK(sum(session, reason) > 0);
    of_reasons += sum(session, reason);
  }
  CHECK_EQ(of_reasons, sum(session, "num_stalled_samples"));
  for (const char *reason : {"stalled_barrier", "stalled_sleeping", "stalled_membar"})
    CHECK(!values(session, reason).empty()); // upstream's readers want them, also if they are 0
  CHECK(session.tree("num_not_issued_samples").empty()); // a column of ours
  std::string file = session.core->encode(0, FileFormat::kProton);
  CHECK(file.find("not_issued_long_scoreboard") != std::string::npos);
  CHECK(file.find("stalled_not_selected") != std::string::npos);
}

TEST(lines_stand_below_kernels_whose_cubin_is_known) {
  fake_cupti_pc_module("lined", 77);
  fake_cupti_pc_module("nolines", 77);
  CuptiSession session(sampling_options());
  fake_cupti_module_loaded(5, 77, 256);
  run("lined", 8000);
  run("nolines", 8000);
  run("unknown", 8000); // its cubin was loaded before the start
  session.stop();
  auto found = values(session, "num_samples");
  CHECK_EQ(found.size(), 4 + 2);
  for (int line = 10; line < 14; ++line)
    CHECK((found.contains("lined//src/kernels.py:" + std::to_string(line) + "@lined")));
  CHECK_EQ(sum(session, "num_samples", "lined/"), 1000);
  CHECK_EQ(found["nolines"], 1000);
  CHECK_EQ(found["unknown"], 1000);
  PcSamplingFacts facts = *session.collector.facts().pc_sampling;
  CHECK_EQ(facts.without_line, sum(session, "num_stalled_samples", "nolines") +
                                   sum(session, "num_stalled_samples", "unknown"));
  std::string file = session.core->encode(0, FileFormat::kProton);
  CHECK(file.find("/src/kernels.py:10@lined") != std::string::npos);
}

TEST(call_paths_share_the_samples_of_a_kernel_by_its_time) {
  CuptiSession session(sampling_options());
  for (int i = 0; i < 10; ++i) {
    ScopeGuard scope("short");
    run("shared", 1000);
  }
  {
    ScopeGuard scope("long");
    run("shared", 30'000);
  }
  session.stop();
  CHECK_EQ(sum(session, "num_samples"), 10 * 125 + 3750);
  CHECK(std::abs(sum(session, "num_samples", "long/") - 3750) <= 2);
  CHECK(std::abs(sum(session, "num_samples", "short/") - 1250) <= 2);
}

TEST(shares_are_those_since_the_last_flush) {
  CuptiSession session(sampling_options());
  {
    ScopeGuard scope("first");
    run("k", 10'000);
  }
  session.collector.flush();
  CHECK_EQ(sum(session, "num_samples", "first/"), 1250);
  {
    ScopeGuard scope("second");
    run("k", 1000);
  }
  session.stop();
  CHECK_EQ(sum(session, "num_samples", "first/"), 1250);
  CHECK_EQ(sum(session, "num_samples", "second/"), 125);
}

TEST(answers_with_a_few_pcs_are_asked_for_until_nothing_remains) {
  fake_cupti_pc_answer(3);
  CuptiSession session(sampling_options());
  for (int kernel = 0; kernel < 20; ++kernel)
    run(("kernel_" + std::to_string(kernel)).c_str());
  session.collector.flush();
  CHECK_EQ(fake_cupti_pc_waiting(), 0);
  CHECK_EQ(sum(session, "num_samples"), 20 * 125);
  session.stop();
  fake_cupti_pc_answer(0);
}

TEST(the_thread_takes_samples_over_without_a_flush) {
  CuptiOptions options = sampling_options();
  options.pc_sampling.drain_ms = 1;
  CuptiSession session(options);
  run("k");
  while (fake_cupti_pc_waiting() != 0)
    std::this_thread::yield();
  session.stop();
  CHECK_EQ(sum(session, "num_samples"), 125);
  CHECK(session.collector.facts().pc_sampling->drain_ns > 0);
}

TEST(dropped_samples_are_counted_and_none_is_lost_beside_them) {
  CuptiSession session(sampling_options());
  fake_cupti_pc_drop(1, 25);
  fake_cupti_pc_driver_kernel(1, 7);
  run("k");
  session.stop();
  PcSamplingFacts facts = *session.collector.facts().pc_sampling;
  CHECK_EQ(session.lost("PC samples dropped by the hardware"), 25);
  CHECK_EQ(facts.dropped, 25);
  CHECK_EQ(facts.of_driver_kernels, 7);
  CHECK_EQ(sum(session, "num_samples"), 100);
  CHECK_EQ(facts.total, facts.samples + facts.not_issued + facts.dropped + facts.of_driver_kernels);
}

TEST(the_automatic_period_keeps_to_a_number_of_samples_a_second) {
  CHECK_EQ(automatic_period_log2(132, 1'980'000), 14);
  CHECK_EQ(automatic_period_log2(16, 1'000'000), 10);
  CHECK_EQ(automatic_period_log2(1, 1000), 5);
  CHECK_EQ(automatic_period_log2(0, 1'980'000), 14);
  CuptiOptions options = sampling_options();
  options.pc_sampling.period_log2 = 0;
  CuptiSession session(options);
  CHECK_EQ(fake_cupti_pc_period(1), 14);
  CHECK(session.collector.facts().pc_sampling->is_automatic);
  CHECK_EQ(session.collector.facts().pc_sampling->period_cycles, 16384);
}

TEST(contexts_are_sampled_when_they_come_and_until_they_go) {
  CuptiSession session(sampling_options());
  fake_cupti_context_created(2);
  CHECK_EQ(fake_cupti_pc_period(2), 0); // nothing runs there yet
  run("k", 1000, 2);
  CHECK_EQ(fake_cupti_pc_period(2), kPeriodLog2);
  run("k", 1000, 3); // its making went unseen
  CHECK_EQ(fake_cupti_pc_period(3), kPeriodLog2);
  run("k", 1000, 3);
  fake_cupti_context_destroyed(2); // with samples that were not taken
  session.stop();
  CHECK_EQ(sum(session, "num_samples"), 375);
  CHECK_EQ(session.collector.facts().pc_sampling->contexts, 3);
  CHECK_EQ(fake_cupti_pc_period(1), 0);
  CHECK_EQ(fake_cupti_pc_period(3), 0);
}

TEST(samples_of_a_module_are_taken_over_before_it_goes) {
  fake_cupti_pc_module("leaving", 99);
  CuptiOptions options = sampling_options();
  options.pc_sampling.drain_ms = 3'600'000; // only callbacks and flushes take over
  CuptiSession session(options);
  uint64_t before = session.collector.facts().pc_sampling->cubins;
  fake_cupti_module_loaded(6, 99, 64);
  run("leaving");
  fake_cupti_module_unloaded(6);
  CHECK_EQ(session.collector.facts().pc_sampling->cubins, before + 1); // for its lines
  session.collector.flush();
  CHECK_EQ(sum(session, "num_samples", "leaving/"), 125);
  CHECK_EQ(session.collector.facts().pc_sampling->cubins, before);
}

TEST(modules_with_one_cubin_share_it) {
  fake_cupti_pc_module("twice", 55);
  CuptiSession session(sampling_options());
  uint64_t before = session.collector.facts().pc_sampling->cubin_bytes;
  fake_cupti_module_loaded(7, 55, 64);
  fake_cupti_module_loaded(8, 55, 64);
  CHECK_EQ(session.collector.facts().pc_sampling->cubin_bytes, before + 64);
  fake_cupti_module_unloaded(7);
  run("twice"); // after the module's samples were forgotten
  session.collector.flush();
  CHECK_EQ(sum(session, "num_samples", "twice/"), 125);
}

TEST(an_earlier_cubin_may_be_added) {
  fake_cupti_pc_module("early", 44);
  CuptiSession session(sampling_options());
  std::string image(32, '\0');
  image[0] = 44; // the double's CRC
  session.collector.add_cubin(image);
  run("early");
  session.stop();
  CHECK_EQ(sum(session, "num_samples", "early/"), 125);
}

TEST(a_kernel_without_a_launch_is_at_the_root) {
  CuptiSession session(sampling_options());
  fake_cupti_other_profiler(1); // takes the records of kernels
  run("lost");
  session.stop();
  fake_cupti_other_profiler(0);
  CHECK_EQ(sum(session, "num_samples", "lost"), 125);
}

TEST(samples_of_pauses_belong_to_no_session) {
  CuptiSession session(sampling_options());
  run("k");
  session.core->deactivate();
  run("k", 3000);
  session.core->activate();
  run("k");
  session.stop();
  CHECK_EQ(session.tree(), "k=2 ");
  CHECK(std::abs(sum(session, "num_samples") - 250) <= 2);
}

TEST(each_phase_has_the_samples_of_its_time) {
  CuptiSession session(sampling_options());
  run("k", 1000);
  session.core->advance_phase();
  run("k", 3000);
  session.stop();
  CHECK_EQ(sum(session, "num_samples", "", 0) + sum(session, "num_samples", "", 1), 500);
  CHECK(std::abs(sum(session, "num_samples", "", 0) - 125) <= 2);
}

TEST(every_session_that_listens_has_all_samples) {
  CuptiSession session(sampling_options());
  SessionRegistry &sessions = CuptiSession::sessions();
  std::shared_ptr<Session> second = sessions.add(ContextSource::kShadow, false);
  second->activate();
  run("k");
  session.collector.flush();
  CHECK_EQ(tree_value(*second)["children"][0]["metrics"]["num_samples"].integer, 125);
  CHECK_EQ(sum(session, "num_samples"), 125);
  second->remove();
}

TEST(a_restart_samples_again_and_nothing_twice) {
  for (int round = 0; round < 3; ++round) {
    run("unseen");
    CuptiSession session(sampling_options());
    run("k");
    session.stop();
    CHECK_EQ(session.tree("num_samples"), "k=125 ");
    CHECK_EQ(session.lost(), 0);
    CHECK_EQ(session.collector.facts().pc_sampling->samples +
                 session.collector.facts().pc_sampling->not_issued,
             125);
  }
  CuptiSession without;
  run("k");
  without.stop();
  CHECK_EQ(without.tree("num_samples"), "");
  CHECK(!without.collector.facts().pc_sampling.has_value());
}

TEST(threads_that_launch_and_unload_lose_no_sample) {
  fake_cupti_pc_answer(5);
  CuptiOptions options = sampling_options();
  options.pc_sampling.drain_ms = 1;
  constexpr int kThreads = 4, kLaunches = 200;
  CuptiSession session(options);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([number] {
      std::string name = "kernel_" + std::to_string(number);
      ScopeGuard scope(name.c_str());
      for (int i = 0; i < kLaunches; ++i) {
        run(name.c_str());
        auto module = static_cast<uint32_t>(100 + number);
        fake_cupti_module_loaded(module, module, 64);
        if (i % 16 == 0)
          fake_cupti_module_unloaded(module);
      }
    });
  for (int i = 0; i < 10; ++i)
    session.collector.flush();
  for (std::thread &thread : threads)
    thread.join();
  session.stop();
  fake_cupti_pc_answer(0);
  CHECK_EQ(sum(session, "num_samples"), kThreads * kLaunches * 125);
  for (int number = 0; number < kThreads; ++number)
    CHECK_EQ(sum(session, "num_samples", "kernel_" + std::to_string(number) + "/"),
             kLaunches * 125);
  CHECK_EQ(session.lost(), 0);
}
