// Launches joined with what they had devices do.
#include <thread>

#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "support/clock.h"

using namespace proton;

namespace {

RecordSink &sink() { return Aggregator::instance(); }

uint64_t launch(LaunchKind kind = LaunchKind::kKernel, uint32_t code = 0) {
  uint64_t id = next_correlation_id();
  sink().launched(id, kind, code);
  return id;
}

void run_kernel(uint64_t id, const char *name = "k", uint64_t node = 0) {
  KernelRecord record;
  record.correlation_id = id;
  record.name = name;
  record.start_ns = 1000;
  record.end_ns = 1010;
  record.stream = 7;
  record.graph_node = node;
  sink().complete({&record, 1});
}

void run_copy(uint64_t id, uint64_t node = 0) {
  CopyRecord record;
  record.correlation_id = id;
  record.name = "<memcpy H2D>";
  record.start_ns = 2000;
  record.end_ns = 2020;
  record.bytes = 4096;
  record.stream = 8;
  record.graph_node = node;
  sink().complete({&record, 1});
}

void settle_all() { sink().settled({1, ~uint64_t{0}, true, 0}); }

} // namespace

TEST(a_launch_is_an_event_from_its_call_to_its_return_joined_with_its_kernel) {
  TimelineSession session;
  int64_t before_ns = monotonic_ns();
  {
    TimedScope scope("s");
    uint64_t id = launch();
    sink().returned(id);
    run_kernel(id);
  }
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "launch s/k; kernel s/k; scope s");
  const TimelineEvent &call = phase.events[0], &kernel = phase.events[1];
  CHECK(call.launch != 0);
  CHECK_EQ(call.launch, kernel.launch);
  CHECK_EQ(call.track, this_thread().number);
  CHECK_EQ(call.device, -1);
  CHECK(before_ns - 100'000 <= call.start_ns && call.start_ns < call.end_ns);
  CHECK_EQ(kernel.start_ns, 1000);
  CHECK_EQ(kernel.end_ns, 1010);
  CHECK_EQ(kernel.track, 7);
  CHECK(kernel.device >= 0);
  CHECK(phase.kinds.at(kernel.node) == FrameKind::kKernel);
  CHECK_EQ(Aggregator::Held().events().open_calls(), 0);
}

TEST(a_call_that_returns_before_it_is_read_takes_one_record) {
  TimelineSession session;
  std::vector<uint64_t> ids{launch(), launch(LaunchKind::kCopy)};
  sink().returned(ids[1]);
  sink().returned(ids[0]); // calls nest: only the newest finds its record
  uint64_t records = 0, returns = 0;
  for_each_thread([&](ThreadState &thread) {
    thread.launches.consume([&](const LaunchEntry &entry, auto take_mark) {
      bool is_launch = entry.kind() == LaunchEntryKind::kLaunch;
      records += is_launch ? 1 : 0;
      returns += entry.kind() == LaunchEntryKind::kReturn ? 1 : 0;
      CHECK_EQ(take_mark() != 0, is_launch && entry.launch.correlation_id == ids[1]);
    });
  });
  CHECK_EQ(records, 2);
  CHECK_EQ(returns, 1);
}

TEST(a_kernel_may_come_before_its_launch_returned) {
  TimelineSession session;
  uint64_t id = launch();
  run_kernel(id);
  CHECK_EQ(described(session.events()), "kernel k");
  sink().returned(id);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "kernel k; launch k");
  CHECK(phase.events[1].start_ns < phase.events[1].end_ns);
  CHECK_EQ(Aggregator::Held().events().open_calls(), 0);
}

TEST(a_call_that_never_returned_ends_when_it_began) {
  TimelineSession session;
  run_kernel(launch());
  const KeptEvents::Phase &phase = session.end();
  CHECK_EQ(described(phase), "kernel k; launch k");
  CHECK_EQ(phase.events[1].start_ns, phase.events[1].end_ns);
}

TEST(where_no_return_is_told_the_call_ends_when_it_began) {
  TimelineSession session;
  uint64_t id = next_correlation_id();
  sink().launched_at(id, 900);
  run_kernel(id);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "launch k; kernel k");
  CHECK_EQ(phase.events[0].start_ns, 900);
  CHECK_EQ(phase.events[0].end_ns, 900);
}

TEST(a_launch_at_an_unknown_time_is_no_event_and_joins_nothing) {
  TimelineSession session;
  uint64_t id = next_correlation_id();
  sink().launched(id);
  run_kernel(id);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "kernel k");
  CHECK_EQ(phase.events[0].launch, 0);
}

TEST(launches_without_a_record_and_those_of_the_profiler_leave_no_event) {
  TimelineSession session;
  uint64_t failed = launch(), retracted = launch(), own = next_correlation_id();
  sink().failed(failed);
  sink().retracted(retracted);
  sink().launched_own(own, LaunchKind::kKernel);
  sink().returned(own);
  run_kernel(own);
  launch(); // its record never comes
  session.events();
  CHECK_EQ(Aggregator::Held().events().open_calls(), 1);
  settle_all();
  CHECK_EQ(described(session.events()), "");
  CHECK_EQ(Aggregator::Held().events().open_calls(), 0);
  CHECK_EQ(session.lost("launch without a kernel record"), 1);
}

TEST(launches_are_of_the_thread_that_made_them_though_another_has_its_log_now) {
  TimelineSession session;
  uint64_t ids[2];
  uint32_t numbers[2];
  for (int i = 0; i < 2; ++i)
    std::thread([&, i] {
      numbers[i] = this_thread().number;
      ids[i] = launch();
      sink().returned(ids[i]);
    }).join();
  for (uint64_t id : ids)
    run_kernel(id);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "launch k; kernel k; launch k; kernel k");
  CHECK(numbers[0] != numbers[1]);
  CHECK_EQ(phase.events[0].track, numbers[0]);
  CHECK_EQ(phase.events[2].track, numbers[1]);
  CHECK_EQ(phase.threads.size(), 2);
}

TEST(copies_say_how_many_bytes_and_a_batch_of_them_has_one_call) {
  TimelineSession session;
  uint64_t one = launch(LaunchKind::kCopy), many = launch(LaunchKind::kCopies);
  sink().returned(one);
  sink().returned(many);
  run_copy(one);
  run_copy(many);
  run_copy(many);
  const KeptEvents::Phase &phase = session.events();
  std::string copy = "<memcpy H2D>";
  CHECK_EQ(described(phase), "launch " + copy + "; copy " + copy + "; launch " + copy + "; copy " +
                                 copy + "; copy " + copy);
  CHECK_EQ(values_of(phase, 1), "bytes=4096 ");
  CHECK_EQ(phase.events[3].launch, phase.events[4].launch);
  CHECK(phase.events[1].launch != phase.events[3].launch);
  CHECK_EQ(Aggregator::Held().events().open_calls(), 1); // more may come
  settle_all();
  CHECK_EQ(Aggregator::Held().events().open_calls(), 0);
}

TEST(nodes_of_a_graph_are_joined_with_the_launch_of_the_graph) {
  TimelineSession session;
  GraphLayout layout;
  layout.nodes = {{1, 0, true}, {2, 0, false}, {3, 0, true}};
  LayoutId number = sink().graphs().add(layout);
  for (int i = 0; i < 2; ++i) {
    TimedScope scope("replay");
    uint64_t id = launch(LaunchKind::kGraph, number);
    sink().returned(id);
    run_kernel(id, "a", 1);
    run_copy(id, 2);
    run_kernel(id, "b", 3);
  }
  const KeptEvents::Phase &phase = session.events();
  std::string at = "replay/<captured_at>";
  std::string once = "launch " + at + "; kernel " + at + "/a; copy " + at +
                     "/<memcpy H2D>; kernel " + at + "/b; scope replay";
  CHECK_EQ(described(phase), once + "; " + once);
  for (size_t i = 1; i < 4; ++i) {
    CHECK_EQ(phase.events[i].launch, phase.events[0].launch);
    CHECK(phase.events[i].is_of_graph);
  }
  CHECK(!phase.events[0].is_of_graph);
  CHECK(phase.events[5].launch != phase.events[0].launch);
  CHECK_EQ(Aggregator::Held().events().open_calls(), 0);
  sink().graphs().retire(number);
}

TEST(a_graph_that_is_recorded_whole_is_one_event) {
  TimelineSession session;
  GraphLayout layout;
  layout.is_whole = true;
  LayoutId number = sink().graphs().add(layout);
  uint64_t id = launch(LaunchKind::kGraph, number);
  sink().returned(id);
  run_kernel(id, "<graph>", kWholeGraph);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "launch <graph>; graph <graph>");
  CHECK(!phase.events[1].is_of_graph);
  CHECK_EQ(phase.events[0].launch, phase.events[1].launch);
  sink().graphs().retire(number);
}

TEST(a_kernel_belongs_to_the_phase_of_its_launch) {
  TimelineSession session;
  uint64_t id = launch();
  sink().returned(id);
  session.advance_phase();
  run_kernel(id);
  CHECK_EQ(described(session.events(0)), "launch k; kernel k");
  CHECK_EQ(described(session.events(1)), "");
}

TEST(calls_of_epochs_that_are_gone_are_forgotten) {
  TimelineSession session;
  constexpr int kMany = 20'000;
  for (int i = 0; i < kMany; ++i)
    launch();
  session.events();
  CHECK_EQ(Aggregator::Held().events().open_calls(), kMany);
  {
    Aggregator::Held held;
    held.epochs().drop(session.tree);
    held.epochs().trim();
  }
  session.listen();
  for (int i = 0; i < kMany; ++i) // those that are gone are looked for as often as they double
    launch();
  session.events();
  CHECK_EQ(Aggregator::Held().events().open_calls(), kMany);
}
