// Timelines of CUPTI's reports: launch calls with their returns, kernels, copies, graphs, ranges.
#include <thread>

#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "collector/cupti/control/cupti_session.h"
#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_records.h"
#include "driver/own_work.h"
#include "support/clock.h"

using namespace proton;

extern "C" int cuptiActivityRegisterTimestampCallback(cupti::function::TimestampSource source);

namespace {

CuptiOptions timeline_options() {
  CuptiOptions options = double_options();
  options.copies = true;
  options.nvtx = true;
  return options;
}

struct Recording {
  explicit Recording(CuptiOptions options = timeline_options())
      : collector(Aggregator::instance(), std::move(options)) {
    collector.start();
    session.listen();
  }
  const KeptEvents::Phase &end() {
    session.pause();
    collector.stop();
    return session.end();
  }

  CuptiCollector collector;
  TimelineSession session;
};

} // namespace

TEST(launch_calls_last_until_their_return_and_are_joined_with_their_kernels) {
  Recording recording;
  int64_t before_ns = monotonic_ns();
  {
    ScopeGuard scope("step");
    fake_cupti_launch("first", 7);
    fake_cupti_launch("second", 9);
  }
  int64_t after_ns = monotonic_ns();
  const KeptEvents::Phase &phase = recording.end();
  CHECK_EQ(described(phase), "scope step; launch step/first; kernel step/first; "
                             "launch step/second; kernel step/second");
  const TimelineEvent &scope = phase.events[0];
  for (size_t call : {1u, 3u}) {
    const TimelineEvent &launch = phase.events[call], &kernel = phase.events[call + 1];
    CHECK(scope.start_ns <= launch.start_ns && launch.end_ns <= scope.end_ns);
    CHECK(launch.start_ns < launch.end_ns);
    CHECK_EQ(launch.launch, kernel.launch);
    CHECK_EQ(launch.track, scope.track);
    CHECK_EQ(kernel.end_ns - kernel.start_ns, 1000);
  }
  CHECK(before_ns - 100'000 <= scope.start_ns && scope.end_ns <= after_ns + 100'000);
  CHECK_EQ(phase.events[2].track, 7);
  CHECK_EQ(phase.events[4].track, 9);
  CHECK_EQ(Aggregator::Held().events().open_calls(), 0);
}

TEST(copies_and_graphs_are_joined_with_their_calls) {
  Recording recording;
  fake_cupti_copy(cupti::kCopyHostToDevice, 64, 8);
  fake_cupti_capture_begin(7);
  {
    ScopeGuard scope("capture");
    fake_cupti_launch("a", 7);
    fake_cupti_launch("b", 7);
  }
  uint32_t executable = fake_cupti_graph_instantiate(fake_cupti_capture_end(7));
  {
    ScopeGuard scope("replay");
    fake_cupti_graph_launch(executable, 7);
  }
  const KeptEvents::Phase &phase = recording.end();
  std::map<std::string, const TimelineEvent *> found;
  for (const TimelineEvent &event : phase.events)
    found[std::to_string(static_cast<int>(event.kind)) + phase.paths.at(event.node)] = &event;
  std::string call = std::to_string(static_cast<int>(EventKind::kLaunch));
  std::string kernel = std::to_string(static_cast<int>(EventKind::kKernel));
  std::string copy = std::to_string(static_cast<int>(EventKind::kCopy));
  const TimelineEvent *replay = found[call + "replay/<captured_at>"];
  const TimelineEvent *a = found[kernel + "replay/<captured_at>/capture/a"];
  const TimelineEvent *b = found[kernel + "replay/<captured_at>/capture/b"];
  CHECK(replay && a && b);
  if (replay && a && b) {
    CHECK(a->is_of_graph && b->is_of_graph && !replay->is_of_graph);
    CHECK(a->launch == replay->launch && b->launch == replay->launch);
    CHECK(replay->start_ns < replay->end_ns);
  }
  CHECK(found[copy + "<memcpy H2D>"] && found[call + "<memcpy H2D>"]);
  CHECK_EQ(phase.events.size(), 7); // what was captured was not launched
}

TEST(ranges_of_nvtx_are_events) {
  Recording recording;
  fake_cupti_nvtx_push("load");
  fake_cupti_launch("k", 7);
  fake_cupti_nvtx_pop();
  CHECK_EQ(described(recording.end()), "scope load; launch load/k; kernel load/k");
}

TEST(work_of_the_profiler_and_failed_launches_are_not_events) {
  Recording recording;
  {
    OwnWork own;
    fake_cupti_launch("ours", 7);
  }
  fake_cupti_failing_launch("broken", 700);
  CHECK_EQ(described(recording.end()), "");
  CHECK_EQ(Aggregator::Held().events().open_calls(), 0);
}

TEST(threads_that_launch_are_lanes_of_their_own) {
  Recording recording;
  auto work = [] {
    for (int i = 0; i < 50; ++i)
      fake_cupti_launch("k", 7);
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  const KeptEvents::Phase &phase = recording.end();
  std::map<uint32_t, size_t> calls;
  size_t kernels = 0;
  for (const TimelineEvent &event : phase.events) {
    calls[event.track] += event.kind == EventKind::kLaunch ? 1 : 0;
    kernels += event.kind == EventKind::kKernel ? 1 : 0;
  }
  std::erase_if(calls, [](const auto &item) { return item.second == 0; });
  CHECK_EQ(calls.size(), 2);
  for (const auto &[thread, count] : calls)
    CHECK_EQ(count, 50);
  CHECK_EQ(kernels, 100);
}

TEST(where_no_session_has_a_timeline_no_return_is_noted) {
  CuptiSession session;
  fake_cupti_launch("k", 7);
  uint64_t noted = 0;
  for_each_thread([&](ThreadState &thread) {
    thread.launches.consume([&](const LaunchEntry &entry) {
      CHECK(entry.kind() != LaunchEntryKind::kReturn);
      noted += entry.kind() == LaunchEntryKind::kLaunch ? 1 : 0;
    });
  });
  CHECK_EQ(noted, 1);
}

TEST(what_the_vendors_clock_gained_is_a_fact) {
  constexpr int64_t kGainNs = 10'000'000'000;
  CuptiOptions options = double_options();
  options.vendor_clock = true;
  cuptiActivityRegisterTimestampCallback(nullptr); // the library's own clock
  fake_cupti_set_clock(static_cast<uint64_t>(monotonic_ns()));
  CuptiCollector collector(Aggregator::instance(), options);
  collector.start();
  fake_cupti_set_clock(static_cast<uint64_t>(monotonic_ns() + kGainNs));
  collector.stop();
  int64_t drift_ns = collector.facts().clock_drift_ns;
  CHECK(drift_ns > kGainNs / 2 && drift_ns < 2 * kGainNs);
}

TEST(a_library_that_reads_our_clock_does_not_drift) {
  CuptiCollector collector(Aggregator::instance(), double_options());
  collector.start();
  collector.stop();
  int64_t drift_ns = collector.facts().clock_drift_ns;
  CHECK(drift_ns > -50'000'000 && drift_ns < 50'000'000);
}
