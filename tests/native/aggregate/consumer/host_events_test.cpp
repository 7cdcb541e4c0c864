// What threads of the program did, as events.
#include <atomic>
#include <set>
#include <thread>

#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "support/clock.h"

using namespace proton;

namespace {

void run_op(const char *name, RangeKind kind = RangeKind::kOp) {
  FrameKind frame = kind == RangeKind::kOp ? FrameKind::kOp : FrameKind::kKernel;
  int64_t start_ns = TickClock::now_ns();
  OpenRange range = enter_range(name, frame);
  int64_t end_ns = TickClock::now_ns();
  exit_range(range, kind, {end_ns, end_ns - start_ns, 1}, -1);
}

} // namespace

TEST(scopes_are_events_with_the_time_from_their_begin_to_their_end) {
  TimelineSession session;
  int64_t before_ns = monotonic_ns();
  {
    TimedScope outer("outer");
    TimedScope inner("inner");
  }
  int64_t after_ns = monotonic_ns();
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "scope outer/inner; scope outer");
  const TimelineEvent &inner = phase.events[0], &outer = phase.events[1];
  CHECK(before_ns - 100'000 <= outer.start_ns && outer.end_ns <= after_ns + 100'000);
  CHECK(outer.start_ns <= inner.start_ns && inner.start_ns <= inner.end_ns);
  CHECK(inner.end_ns <= outer.end_ns);
  CHECK_EQ(outer.device, -1);
  CHECK_EQ(outer.launch, 0);
}

TEST(a_scope_around_others_contains_them_however_late_it_ends) {
  TimelineSession session;
  std::vector<TimelineEvent> inner;
  {
    TimedScope outer("outer");
    for (int64_t end_ns = monotonic_ns() + 300'000'000; monotonic_ns() < end_ns;) {
      TimedScope step("step");
      session.events(); // the clocks are read anew meanwhile
    }
  }
  const KeptEvents::Phase &phase = session.events();
  const TimelineEvent &outer = phase.events.back();
  CHECK(phase.events.size() > 4);
  for (const TimelineEvent &event : phase.events) {
    CHECK(outer.start_ns <= event.start_ns && event.end_ns <= outer.end_ns);
    CHECK(event.start_ns <= event.end_ns);
  }
}

TEST(each_thread_is_a_lane_with_the_name_that_the_system_knows) {
  TimelineSession session;
  auto work = [](const char *name) {
    pthread_setname_np(pthread_self(), name);
    TimedScope scope("s");
  };
  std::thread(work, "loader").join();
  std::thread(work, "worker").join(); // perhaps with the state of the first
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "scope s; scope s");
  CHECK(phase.events[0].track != phase.events[1].track);
  CHECK_EQ(phase.threads.size(), 2);
  std::map<uint32_t, std::string> names;
  std::set<int64_t> ids;
  for (const EventThread &thread : phase.threads) {
    names[thread.number] = thread.name;
    ids.insert(thread.thread_id);
  }
  CHECK_EQ(names[phase.events[0].track], "loader");
  CHECK_EQ(names[phase.events[1].track], "worker");
  CHECK_EQ(ids.size(), 2);
  CHECK(!ids.contains(0));
}

TEST(a_thread_is_announced_once_in_each_phase) {
  TimelineSession session;
  for (int i = 0; i < 3; ++i)
    TimedScope scope("s");
  session.advance_phase();
  {
    TimedScope scope("s");
  }
  CHECK_EQ(session.events(0).threads.size(), 1);
  CHECK_EQ(session.events(1).threads.size(), 1);
}

TEST(operators_and_interpreted_kernels_are_events_of_their_whole_duration) {
  TimelineSession session;
  {
    TimedScope scope("s");
    run_op("aten::add");
    run_op("kernel", RangeKind::kKernel);
  }
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "op s/aten::add; interpreted s/kernel; scope s");
  CHECK_EQ(phase.events[0].track, this_thread().number);
  CHECK(phase.events[0].end_ns <= phase.events[1].start_ns);
}

TEST(a_range_that_ended_on_another_thread_stays_with_the_one_where_it_began) {
  TimelineSession session;
  uint32_t began = this_thread().number;
  std::vector<NamedFrame> path{{Name("request"), FrameKind::kOp, 0}};
  std::thread([&] {
    record_range(path, RangeKind::kOp, {TickClock::now_ns(), 50, 50}, began);
  }).join();
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "op request");
  CHECK_EQ(phase.events[0].track, began);
  CHECK_EQ(phase.events[0].end_ns - phase.events[0].start_ns, 50);
}

TEST(a_range_without_times_is_in_the_tree_and_no_event) {
  TimelineSession session;
  exit_range(enter_range("aten::add", FrameKind::kOp), RangeKind::kOp, {0, 5, 5}, -1);
  CHECK_EQ(described(session.events()), "");
  CHECK_EQ(session.tree.bare_tree(0).nodes().size(), 2);
}

TEST(a_session_that_nobody_takes_events_of_makes_none_and_times_no_scope) {
  TimelineSession session(false);
  CHECK(!session_state().wants_times && !session_state().wants_timeline);
  {
    TimedScope scope("s");
    CHECK_EQ(this_thread().stack.top().start(), 0);
    run_op("aten::add");
  }
  session.events();
  CHECK(session.kept->phases[0].batches == 0);
}

TEST(a_scope_belongs_to_the_phase_in_which_it_ends) {
  TimelineSession session;
  {
    TimedScope outer("outer");
    {
      TimedScope inner("first");
    }
    session.advance_phase();
    TimedScope inner("second");
  }
  CHECK_EQ(described(session.events(0)), "scope outer/first");
  CHECK_EQ(described(session.events(1)), "scope outer/second; scope outer");
  CHECK(session.events(1).events[1].start_ns < session.events(0).events[0].start_ns);
}

TEST(what_ends_while_the_session_pauses_is_not_shown_and_what_goes_on_is) {
  TimelineSession session;
  {
    TimedScope outer("outer");
    {
      TimedScope inner("paused");
      session.pause();
    }
    session.listen();
  }
  CHECK_EQ(described(session.events()), "scope outer");
}

TEST(scopes_opened_before_the_session_are_not_its_events) {
  TimelineSession before;
  TimedScope outer("before");
  {
    TimelineSession session;
    {
      TimedScope inner("inner");
    }
    CHECK_EQ(described(session.end()), "scope inner");
  }
  before.listen();
}

TEST(a_session_of_python_paths_has_no_scopes) {
  TimelineSession session(true, ContextSource::kPython);
  {
    TimedScope scope("s");
    run_op("aten::add");
  }
  CHECK_EQ(described(session.events()), "op aten::add");
}
