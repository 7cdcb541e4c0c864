// Sampling is switched on, off and to longer periods while the target goes on.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"
#include "collector/cupti/pc_sampling/cupti_samples.h"
#include "collector/gpu/launches/launch_thread.h"

using namespace proton;

TEST(full_buffers_double_the_period_and_are_counted) {
  CuptiOptions options = sampling_options();
  options.pc_sampling.drain_ms = 1;
  CuptiSession session(options);
  CHECK_EQ(fake_cupti_pc_period(1), kPeriodLog2);
  auto overrun = [](uint32_t doubled) {
    fake_cupti_pc_overrun(1);
    while (fake_cupti_pc_period(1) != kPeriodLog2 + doubled) // the thread does it
      std::this_thread::yield();
  };
  overrun(1);
  run("k"); // 4 * 1000 / 64
  while (fake_cupti_pc_waiting() != 0)
    std::this_thread::yield();
  overrun(2);
  overrun(4);     // nothing came meanwhile
  run("k", 8000); // 4 * 8000 / 512
  session.stop();
  PcSamplingFacts facts = *session.collector.facts().pc_sampling;
  CHECK_EQ(facts.doubled, 4);
  CHECK_EQ(facts.period_cycles, 512);
  CHECK_EQ(session.lost("full buffers of PC samples"), 3);
  CHECK_EQ(sum(session, "num_samples"), 62 + 62);
}

TEST(a_buffer_that_is_full_at_the_end_is_reported) {
  CuptiOptions options = sampling_options();
  options.pc_sampling.drain_ms = 3'600'000; // so the period is not doubled
  CuptiSession session(options);
  fake_cupti_pc_overrun(1);
  session.collector.flush();
  session.stop();
  CHECK_EQ(session.lost("full buffers of PC samples"), 1);
}

TEST(first_launches_of_two_threads_do_not_wait_for_each_other) {
  CuptiOptions options = sampling_options();
  options.pc_sampling.drain_ms = 3'600'000; // only launches have contexts sampled
  CuptiSession session(options);
  for (uint32_t context = 10; context < 50; context += 2) {
    std::atomic<int> ready{0};
    auto launch = [&](uint32_t in) {
      for (++ready; ready != 2;) {
      }
      run("k", 1000, in);
    };
    std::thread other(launch, context + 1);
    launch(context);
    other.join();
    CHECK_EQ(fake_cupti_pc_period(context), kPeriodLog2);
    CHECK_EQ(fake_cupti_pc_period(context + 1), kPeriodLog2);
  }
  session.stop();
  CHECK_EQ(sum(session, "num_samples"), 40 * 125);
}

TEST(an_earlier_call_whose_end_was_not_reported_holds_nothing_up) {
  std::atomic<bool> is_inside{false}, is_over{false};
  std::thread idle([&] {
    enter_call(*this_launch_thread()); // CUPTI was switched off before the call ended
    is_inside = true;
    while (!is_over)
      std::this_thread::yield();
  });
  while (!is_inside)
    std::this_thread::yield();
  CuptiSession session(sampling_options());
  CHECK_EQ(fake_cupti_pc_period(1), kPeriodLog2);
  run("k");
  session.stop();
  CHECK_EQ(fake_cupti_pc_period(1), 0);
  CHECK_EQ(sum(session, "num_samples"), 125);
  CHECK_EQ(session.lost(), 0);
  is_over = true;
  idle.join();
}

TEST(kernels_of_modules_that_came_between_two_sessions_have_samples) {
  fake_cupti_pc_module("between", 66);
  {
    CuptiSession first(sampling_options());
    run("k");
    first.stop();
  }
  fake_cupti_module_loaded(9, 66, 64);
  CuptiSession second(sampling_options());
  run("between");
  second.stop();
  CHECK_EQ(sum(second, "num_samples", "between"), 125);
  CHECK_EQ(second.collector.facts().pc_sampling->of_driver_kernels, 0);
}

TEST(sampling_is_switched_while_no_thread_launches) {
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (uint32_t number = 1; number <= 3; ++number)
    threads.emplace_back([&, number] {
      while (!is_over) {
        run("k", 1000, number);
        fake_cupti_drain(); // else records come faster than they are read
      }
    });
  for (PcSamplingMode mode : {PcSamplingMode::kContinuous, PcSamplingMode::kScope})
    for (int round = 0; round < 5; ++round) {
      CuptiOptions options = sampling_options(mode);
      options.pc_sampling.drain_ms = 1;
      CuptiSession session(options);
      ScopeGuard scope("range");
      fake_cupti_pc_overrun(1);
      while (session.collector.facts().pc_sampling->doubled == 0)
        std::this_thread::yield();
      session.stop();
    }
  is_over = true;
  for (std::thread &thread : threads)
    thread.join();
  CHECK_EQ(fake_cupti_pc_collisions(), 0);
}
