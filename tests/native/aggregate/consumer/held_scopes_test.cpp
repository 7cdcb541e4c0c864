// Scopes that objects of the program hold, and leave in any order and on any thread.
#include <thread>

#include "aggregate/consumer/timeline_session.h"
#include "check.h"
#include "context/thread/shadow_stack.h"

using namespace proton;

namespace {

HeldScope open_held(const char *name) {
  ThreadState &thread = this_thread();
  uint32_t index = thread.stack.depth();
  StackEntry &entry = open_scope(hashed(name), FrameKind::kScope, session_state());
  entry.is_held = true;
  return {&thread, index, entry.scope_id()};
}

void open_plain(const char *name) { open_scope(hashed(name), FrameKind::kScope, session_state()); }

/// Starts and ends at a time of its own.
void pass_time() {
  for (int64_t begin_ns = TickClock::now_ns(); TickClock::now_ns() == begin_ns;) {
  }
}

} // namespace

TEST(a_held_scope_stays_open_when_the_one_around_it_is_left) {
  TimelineSession session;
  HeldScope outer = open_held("a"), inner = open_held("b");
  close_scope(outer.index, session_state());
  {
    TimedScope inside("c");
  }
  pass_time();
  close_scope(inner.index, session_state());
  CHECK_EQ(this_thread().stack.depth(), 0);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "scope a; scope a/b/c; scope a/b");
  CHECK(phase.events[2].end_ns >= phase.events[1].end_ns);
}

TEST(a_scope_that_no_object_holds_ends_with_the_one_around_it_and_keeps_its_time) {
  TimelineSession session;
  HeldScope outer = open_held("a");
  open_plain("b");
  HeldScope inner = open_held("c");
  open_plain("d");
  close_scope(outer.index, session_state());
  CHECK_EQ(this_thread().stack.depth(), 3); // c, and what is below it
  close_scope(inner.index, session_state());
  CHECK_EQ(this_thread().stack.depth(), 0);
  CHECK_EQ(described(session.events()), "scope a/b/c/d; scope a/b; scope a; scope a/b/c");
}

TEST(operators_above_leave_with_the_scope_unless_a_held_one_stands_on_them) {
  TimelineSession session;
  HeldScope outer = open_held("a");
  OpenRange op = enter_range("op", FrameKind::kOp);
  HeldScope inner = open_held("b");
  enter_range("left open", FrameKind::kOp);
  close_scope(outer.index, session_state());
  CHECK_EQ(this_thread().stack.depth(), 3);
  exit_range(op, RangeKind::kOp, {TickClock::now_ns(), 1, 1}, -1);
  close_scope(inner.index, session_state());
  CHECK_EQ(this_thread().stack.depth(), 0);
  CHECK_EQ(described(session.events()), "scope a; op a/op; scope a/op/b");
}

TEST(another_thread_closes_a_scope_at_once_and_its_owner_goes_on_outside) {
  TimelineSession session;
  HeldScope scope = open_held("a");
  std::thread([&] { close_elsewhere(scope); }).join();
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "scope a");
  CHECK_EQ(phase.events[0].track, this_thread().number);
  {
    TimedScope next("next");
  }
  CHECK_EQ(described(session.events()), "scope a; scope next");
  CHECK_EQ(this_thread().stack.depth(), 0);
  close_elsewhere(scope);
  CHECK_EQ(described(session.events()), "scope a; scope next");
}

TEST(launches_after_a_close_from_elsewhere_stand_outside) {
  TimelineSession session;
  HeldScope scope = open_held("a");
  std::thread([&] { close_elsewhere(scope); }).join();
  CHECK_EQ(capture_current().shadow, 0);
}

TEST(a_scope_is_closed_after_its_thread_has_ended) {
  TimelineSession session;
  HeldScope scope;
  uint32_t number = kNoThread;
  std::thread([&] {
    number = this_thread().number;
    scope = open_held("a");
  }).join();
  std::vector<ContextId> kept;
  append_expired(kept);
  CHECK_EQ(kept.size(), 1);
  CHECK(context_of_scope(scope.id, session_state().epoch) == kept[0]);
  pass_time();
  close_elsewhere(scope);
  const KeptEvents::Phase &phase = session.events();
  CHECK_EQ(described(phase), "scope a");
  CHECK_EQ(phase.events[0].track, number);
  CHECK(phase.events[0].end_ns > phase.events[0].start_ns);
  CHECK(!find_expired(scope.id));
}
