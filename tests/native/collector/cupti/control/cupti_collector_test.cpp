#include "collector/cupti/control/cupti_collector.h"

#include <thread>
#include <vector>

#include "check.h"
#include "collector/cupti/callbacks/callbacks.h"
#include "collector/cupti/control/cupti_session.h"
#include "driver/cupti/cupti_abi.h"
#include "support/clock.h"
#include "support/error.h"

using namespace proton;

TEST(kernels_stand_below_the_scopes_they_were_launched_in) {
  CuptiSession session;
  {
    ScopeGuard outer("outer");
    fake_cupti_launch("add", 7);
    fake_cupti_launch("add", 7);
    ScopeGuard inner("inner");
    fake_cupti_launch("mul", 8);
  }
  session.stop();
  CHECK_EQ(session.tree(), "outer/inner/mul=1 outer/add=2 ");
  CHECK_EQ(session.tree("time (ns)"), "outer/inner/mul=1000 outer/add=2000 ");
  CHECK_EQ(session.lost(), 0);
  CHECK(session.counts().is_complete());
}

TEST(names_are_shown_as_they_are_in_cpp) {
  CuptiSession session;
  fake_cupti_launch("_Z6matmulPfS_i", 7);
  session.stop();
  CHECK_EQ(session.tree(), "matmul(float*, float*, int)=1 ");
}

TEST(copies_are_recorded_when_asked_for_only) {
  CuptiOptions options = double_options();
  for (bool copies : {false, true}) {
    options.copies = copies;
    CuptiSession session(options);
    fake_cupti_copy(cupti::kCopyHostToDevice, 4096, 7);
    fake_cupti_copy(cupti::kCopyDeviceToHost, 100, 7);
    fake_cupti_set(64, 7);
    session.stop();
    CHECK_EQ(session.tree("bytes"),
             copies ? "<memcpy H2D>=4096 <memcpy D2H>=100 <memset>=64 " : "");
    CHECK_EQ(session.lost(), 0);
    CHECK(session.counts().is_complete());
  }
}

TEST(every_copy_of_a_batch_is_recorded) {
  CuptiOptions options = double_options();
  options.copies = true;
  CuptiSession session(options);
  Aggregator &sink = Aggregator::instance();
  CorrelationIds ids;
  LaunchLog log(sink, ids);
  log.arm();
  CopyCalls source(log);
  constexpr uint32_t kMemcpyBatchAsync = 776;
  cupti::CallbackData call{};
  call.correlation_id = 5;
  {
    ScopeGuard guard("load");
    source.handle(cupti::kDomainDriver, kMemcpyBatchAsync, &call);
    call.site = cupti::kExit;
    source.handle(cupti::kDomainDriver, kMemcpyBatchAsync, &call);
  }
  CopyRecord copy;
  copy.correlation_id = ids.widen(5);
  copy.name = "<memcpy H2D>";
  copy.bytes = 16;
  for (int i = 0; i < 3; ++i)
    sink.complete(std::span<const CopyRecord>(&copy, 1));
  session.stop();
  CHECK_EQ(session.tree("bytes"), "load/<memcpy H2D>=48 ");
  CHECK(session.counts().is_complete());
  CHECK_EQ(Aggregator::Held().launches().size(), 0);
}

TEST(failed_launches_are_taken_back) {
  CuptiSession session;
  fake_cupti_failing_launch("broken", 700);
  fake_cupti_launch("fine", 7);
  session.collector.flush();
  CHECK_EQ(session.counts().failed, 1);
  CHECK_EQ(session.counts().records, 1);
  CHECK(session.counts().is_complete());
  session.stop();
  CHECK_EQ(session.tree(), "fine=1 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(captured_launches_are_taken_back) {
  CuptiSession session;
  fake_cupti_capture_begin(7);
  fake_cupti_launch("captured", 7);
  fake_cupti_capture_end(7);
  fake_cupti_launch("run", 7);
  session.stop();
  CHECK_EQ(session.tree(), "run=1 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(each_thread_launches_in_its_own_scope) {
  CuptiSession session;
  constexpr int kThreads = 6, kLaunches = 500;
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([number] {
      ScopeGuard scope(("thread " + std::to_string(number)).c_str());
      for (int i = 0; i < kLaunches; ++i)
        fake_cupti_launch("k", 7);
    });
  for (std::thread &thread : threads)
    thread.join();
  session.stop();
  std::string tree = session.tree();
  for (int number = 0; number < kThreads; ++number)
    CHECK(tree.find("thread " + std::to_string(number) + "/k=500 ") != std::string::npos);
  CHECK_EQ(session.lost(), 0);
}

TEST(correlation_ids_may_wrap) {
  CuptiSession session;
  fake_cupti_set_correlation(0xFFFFFFF0u);
  for (int i = 0; i < 64; ++i)
    fake_cupti_launch("k", 7);
  session.collector.flush();
  for (int i = 0; i < 64; ++i)
    fake_cupti_launch("k", 7);
  session.stop();
  CHECK_EQ(session.tree(), "k=128 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(dropped_records_are_counted_once_and_their_phase_is_complete) {
  CuptiSession session;
  FakeLaunch launch;
  launch.context = 3;
  fake_cupti_hold(3);
  fake_cupti_launch_as(&launch);
  fake_cupti_context_destroyed(3); // its record never comes
  fake_cupti_drop(1);
  fake_cupti_launch("kept", 7);
  session.collector.flush();
  CHECK_EQ(session.lost("records dropped by CUPTI"), 1);
  CHECK_EQ(session.lost(), 1);
  CHECK_EQ(session.counts().dropped, 1);
  CHECK(session.counts().is_complete());
  session.stop();
  CHECK_EQ(session.lost(), 1);
}

TEST(a_launch_whose_record_never_comes_is_a_loss_in_the_end) {
  CuptiSession session;
  FakeLaunch launch;
  launch.context = 4;
  fake_cupti_hold(4);
  fake_cupti_launch_as(&launch);
  fake_cupti_context_destroyed(4);
  session.collector.flush();
  CHECK_EQ(session.counts().outstanding(), 1);
  session.stop();
  CHECK_EQ(session.lost("launch without a kernel record"), 1);
  CHECK(session.counts().is_complete());
}

TEST(a_flush_waits_for_every_context) {
  CuptiSession session;
  fake_cupti_hold(1);
  fake_cupti_hold(2);
  FakeLaunch launch;
  launch.name = "first";
  fake_cupti_launch_as(&launch);
  launch.name = "second";
  launch.context = 2;
  launch.device = 1;
  std::thread([&] { fake_cupti_launch_as(&launch); }).join();
  session.collector.flush();
  CHECK_EQ(session.counts().records, 2);
  session.stop();
  CHECK_EQ(session.lost(), 0);
}

TEST(a_destroyed_context_is_not_waited_for) {
  CuptiSession session;
  fake_cupti_launch("k", 7);
  fake_cupti_context_destroyed(1);
  session.stop();
  CHECK_EQ(session.tree(), "k=1 ");
}

TEST(a_restart_records_again_and_nothing_twice) {
  for (int round = 0; round < 3; ++round) {
    fake_cupti_launch("unseen", 7);
    CuptiSession session;
    fake_cupti_launch("k", 7);
    session.stop();
    fake_cupti_launch("unseen", 7);
    CHECK_EQ(session.tree(), "k=1 ");
    CHECK_EQ(session.lost(), 0);
  }
  CHECK_EQ(fake_cupti_buffers_outstanding(), 0);
  CHECK_EQ(fake_cupti_is_kind_enabled(cupti::kKindConcurrentKernel), 0);
  CHECK_EQ(fake_cupti_is_enabled(cupti::kDomainDriver, cupti::kCuLaunchKernelEx), 0);
}

TEST(windows_are_exact_to_the_launch) {
  CuptiSession session;
  SessionRegistry &sessions = CuptiSession::sessions();
  std::shared_ptr<Session> narrow = sessions.add(ContextSource::kShadow, false);
  for (int i = 0; i < 5; ++i) {
    fake_cupti_launch("outside", 7);
    narrow->activate();
    fake_cupti_launch("inside", 7);
    narrow->deactivate(); // its record comes later
  }
  session.collector.flush();
  CHECK_EQ(narrow->counts().records, 5);
  CHECK(tree_text(*narrow).find("outside") == std::string::npos);
  narrow->remove();
  session.stop();
  CHECK_EQ(session.tree(), "outside=5 inside=5 ");
}

TEST(launches_without_a_session_are_not_losses) {
  CuptiSession session;
  fake_cupti_launch("heard", 7);
  session.core->deactivate();
  fake_cupti_launch("unheard", 7);
  session.core->activate();
  fake_cupti_launch("heard", 7);
  session.stop();
  CHECK_EQ(session.tree(), "heard=2 ");
  CHECK_EQ(session.lost(), 0);
}

TEST(phases_move_without_a_flush_when_buffers_are_read_periodically) {
  CuptiSession session;
  fake_cupti_launch("k", 7);
  session.core->advance_phase();
  CHECK(!session.core->is_phase_complete(0));
  fake_cupti_period_elapsed();
  CHECK(session.core->is_phase_complete(0));
  session.stop();
}

TEST(times_of_the_vendors_clock_are_converted) {
  CuptiOptions options = double_options();
  options.vendor_clock = true;
  CuptiSession session(options);
  fake_cupti_launch("k", 7);
  session.stop();
  CHECK_EQ(session.tree("time (ns)"), "k=1000 ");
  CHECK_EQ(session.collector.facts().clock, "vendor");
}

TEST(facts_name_library_driver_and_devices) {
  CuptiSession session;
  for (int i = 0; i < 40'000; ++i) { // many, because the tests above count too
    FakeLaunch launch;
    launch.duration_ns = 32 * static_cast<uint64_t>(i % 64 + 30);
    fake_cupti_launch_as(&launch);
  }
  session.stop();
  CuptiFacts facts = session.collector.facts();
  CHECK_EQ(facts.library, std::getenv("PROTON_BENCH_CUPTI_LIB"));
  CHECK_EQ(facts.version, "12.8");
  CHECK_EQ(facts.driver, "13.0");
  CHECK_EQ(facts.devices.at(0).driver.device.num_sms, 132);
  CHECK_EQ(facts.devices.at(0).tick_ns, 32);
}

TEST(a_collector_that_runs_is_not_started_again) {
  CuptiSession session;
  CuptiCollector second(Aggregator::instance(), double_options());
  CHECK_THROWS(second.start(), Error);
  fake_cupti_launch("k", 7);
  session.stop();
  CHECK_EQ(session.tree(), "k=1 ");
}

TEST(latency_is_from_the_driver_call_to_the_start_on_the_device) {
  CuptiSession session;
  constexpr int64_t kLaterNs = 50'000'000;
  int64_t before_ns = monotonic_ns();
  fake_cupti_set_clock(static_cast<uint64_t>(before_ns + kLaterNs));
  {
    ScopeGuard scope("step");
    fake_cupti_launch("add", 7);
  }
  int64_t after_ns = monotonic_ns();
  session.collector.flush();
  msgpack::Value file = msgpack::parse(session.core->encode(0, FileFormat::kProton));
  const msgpack::Value &uses = file["device_use"];
  CHECK_EQ(uses.items.size(), 2);
  CHECK_EQ(uses[1]["scope"].text, "step");
  CHECK_EQ(uses[0]["busy_ns"].integer, 1000);
  CHECK_EQ(uses[0]["launches"].integer, 1);
  CHECK_EQ(uses[0]["latency_clamped"].integer, 0);
  CHECK_EQ(uses[0]["idle_ns"].integer, uses[0]["latency_sum_ns"].integer);
  constexpr int64_t kSlackNs = 1'000'000; // between the readings of two clocks
  CHECK(uses[0]["latency_max_ns"].integer <= kLaterNs + kSlackNs);
  CHECK(uses[0]["latency_min_ns"].integer >= kLaterNs - (after_ns - before_ns) - kSlackNs);
}
