#include "context/thread/current.h"

#include "check.h"
#include "context/thread/thread_state.h"

using namespace proton;

namespace {

ContextId fixed_python(const SessionState &, bool) noexcept { return 42; }

} // namespace

TEST(the_published_state_is_read_back_whole) {
  SessionState next;
  next.epoch = 0xdeadbeef;
  next.generation = 0xabcdef;
  next.active = next.wants_times = true;
  publish_session_state(next);
  SessionState read = session_state();
  CHECK_EQ(read.epoch, 0xdeadbeef);
  CHECK_EQ(read.generation, 0xabcdef);
  CHECK(read.active && read.wants_times && !read.wants_python);
  publish_session_state({});
}

TEST(nothing_is_captured_while_no_session_is_active) {
  publish_session_state({});
  CHECK_EQ(capture_current().epoch, 0);
}

TEST(a_capture_names_epoch_and_place) {
  SessionState now;
  now.epoch = 3;
  now.generation = 1;
  now.active = true;
  publish_session_state(now);
  ShadowStack &stack = this_thread().stack;
  ContextId id = stack.push(hashed("here"), FrameKind::kScope, now).id;
  Capture capture = capture_current();
  stack.pop(now);
  publish_session_state({});
  CHECK_EQ(capture.epoch, 3);
  CHECK_EQ(capture.shadow, id);
  CHECK_EQ(capture.python, 0);
}

TEST(python_frames_are_asked_for_only_when_a_session_wants_them) {
  SessionState now;
  now.epoch = 1;
  now.active = true;
  set_python_source(fixed_python);
  publish_session_state(now);
  CHECK_EQ(capture_current().python, 0);
  now.wants_python = true;
  publish_session_state(now);
  CHECK_EQ(capture_current().python, 42);
  set_python_source(nullptr);
  publish_session_state({});
}
