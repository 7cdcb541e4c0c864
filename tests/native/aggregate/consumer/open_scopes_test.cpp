// Scopes that had not ended when the session did.
#include <atomic>
#include <thread>

#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "support/clock.h"

using namespace proton;

TEST(scopes_open_at_the_end_are_shown_until_then) {
  TimelineSession session;
  TimedScope outer("outer");
  TimedScope inner("inner");
  const KeptEvents::Phase &phase = session.end();
  CHECK_EQ(described(phase), "scope outer?; scope outer/inner?");
  CHECK(phase.is_over);
  CHECK(phase.events[0].start_ns <= phase.events[1].start_ns);
  CHECK_EQ(phase.events[0].end_ns, phase.events[1].end_ns);
  CHECK(phase.events[0].end_ns <= monotonic_ns() + 100'000);
}

TEST(scopes_of_other_threads_are_shown_with_their_lanes) {
  TimelineSession session;
  std::atomic<bool> is_open{false}, may_end{false};
  std::atomic<uint32_t> number{kNoThread};
  std::thread other([&] {
    TimedScope scope("other");
    number = this_thread().number;
    is_open = true;
    is_open.notify_one();
    may_end.wait(false);
  });
  is_open.wait(false);
  const KeptEvents::Phase &phase = session.end();
  may_end = true;
  may_end.notify_one();
  other.join();
  CHECK_EQ(described(phase), "scope other?");
  CHECK_EQ(phase.events[0].track, number.load());
  CHECK_EQ(phase.threads.size(), 1);
}

TEST(a_scope_that_was_shown_open_is_not_shown_again_when_it_ends) {
  TimelineSession session;
  {
    TimedScope scope("s");
    Aggregator::Held held;
    held.drain();
    held.events().add_open_scopes(session.member());
    held.events().add_open_scopes(session.member());
  }
  CHECK_EQ(described(session.events()), "scope s?");
  {
    TimedScope scope("s");
  }
  CHECK_EQ(described(session.events()), "scope s?; scope s");
}

TEST(frames_other_than_scopes_and_scopes_that_were_not_recorded_are_not_shown) {
  TimelineSession session;
  OpenRange op = enter_range("aten::add", FrameKind::kOp);
  this_thread().stack.push_noop(hashed("noop"), FrameKind::kScope);
  CHECK_EQ(described(session.end()), "");
  close_top(session_state());
  abandon_range(op);
}

TEST(what_comes_after_the_end_of_a_phase_is_counted_as_lost) {
  TimelineSession session;
  session.end();
  session.listen();
  {
    TimedScope scope("s");
  }
  CHECK_EQ(described(session.events()), "");
  CHECK_EQ(session.lost(), 1);
}

TEST(stacks_are_read_while_their_threads_work) {
  TimelineSession session;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 200'000 && !is_over; ++turn) {
        TimedScope outer("outer");
        TimedScope inner("inner");
      }
    });
  for (int i = 0; i < 50; ++i) {
    Aggregator::Held held;
    held.drain();
    held.events().add_open_scopes(session.member());
  }
  is_over = true;
  for (std::thread &thread : threads)
    thread.join();
  const KeptEvents::Phase &phase = session.events();
  for (const TimelineEvent &event : phase.events) {
    const std::string &path = phase.paths.at(event.node);
    CHECK(path == "outer" || path == "outer/inner");
    CHECK(event.start_ns > 0 && event.start_ns <= event.end_ns);
  }
}
