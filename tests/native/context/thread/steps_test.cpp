#include "context/thread/steps.h"

#include <thread>

#include "check.h"
#include "context/thread/thread_state.h"

using namespace proton;

namespace {

int g_firsts = 0, g_others = 0;

void begin() {
  g_firsts = g_others = 0;
  follow_steps([](bool is_first) noexcept { ++(is_first ? g_firsts : g_others); });
}

void scopes(int count, const char *name = "step") {
  for (int i = 0; i < count; ++i)
    mark_step(StepMark::kScope, name);
}

/// A frame on the stack of the test's thread.
struct Frame {
  ShadowStack &stack = this_thread().stack;
  Frame(FrameKind kind, std::string_view name) {
    SessionState now;
    now.epoch = now.generation = 1;
    now.active = true;
    stack.push(hashed(name), kind, now);
  }
  ~Frame() { stack.pop(SessionState{}); }
};

} // namespace

TEST(windows_double_and_the_newest_that_is_over_is_kept) {
  begin();
  scopes(2 + 9); // the third one of a scope is the first step
  std::optional<StepWindow> window = whole_window();
  CHECK(window && window->mark == StepMark::kScope && window->name == "step");
  CHECK(window->first == 6 && window->count == 4 && window->periods_ns.size() == 4);
  CHECK(window->end_ns >= window->begin_ns);
  CHECK(step_marks() == 11 && g_firsts == 1 && g_others == 3);
}

TEST(what_comes_fewer_than_three_times_is_no_step) {
  begin();
  for (const char *name : {"load", "warm up", "load"})
    mark_step(StepMark::kScope, name);
  CHECK(step_marks() == 0 && !whole_window() && g_firsts == 0);
}

TEST(numbers_in_names_do_not_tell_steps_apart) {
  begin();
  for (const char *name : {"step 1 of 20", "step 2 of 20", "step 10 of 20", "step 11 of 20"})
    mark_step(StepMark::kScope, name);
  CHECK_EQ(step_marks(), 4);
  mark_step(StepMark::kScope, "step 3 of");
  mark_step(StepMark::kScope, "step 3 of 20 000");
  CHECK_EQ(step_marks(), 4);
}

TEST(a_better_mark_takes_over_and_begins_anew) {
  begin();
  for (int i = 0; i < 3; ++i)
    mark_step(StepMark::kLayer, "Model");
  mark_step(StepMark::kOptimizer, "SGD");
  CHECK(step_marks() == 3 && g_firsts == 1);
  mark_step(StepMark::kOptimizer, "SGD"); // the first one ends what came before the first step
  CHECK(step_marks() == 2 && g_firsts == 2);
  mark_step(StepMark::kLayer, "Model");
  CHECK_EQ(step_marks(), 2);
  mark_step(StepMark::kDeclared, "step");
  CHECK(whole_window() == std::nullopt && step_marks() == 1 && g_firsts == 3);
}

TEST(outer_scopes_are_the_steps_unless_they_hold_many) {
  begin();
  auto nested = [](int inside) {
    mark_step(StepMark::kScope, "outer");
    Frame outer(FrameKind::kScope, "outer");
    scopes(inside, "inner");
  };
  for (int i = 0; i < 4; ++i)
    nested(20);
  CHECK(step_marks() == 4 && g_firsts == 2);
}

TEST(tests_layers_and_deep_scopes_show_no_steps) {
  begin();
  {
    Frame test(FrameKind::kTest, "test_it");
    scopes(5);
    for (int i = 0; i < 5; ++i)
      mark_step(StepMark::kOptimizer, "SGD");
  }
  {
    Frame layer(FrameKind::kLayer, "Model");
    scopes(5);
  }
  {
    Frame a(FrameKind::kScope, "a"), b(FrameKind::kScope, "b"), c(FrameKind::kScope, "c"),
        d(FrameKind::kScope, "d");
    scopes(5);
  }
  CHECK_EQ(step_marks(), 0);
}

TEST(periods_of_a_long_window_are_thinned_evenly) {
  begin();
  scopes(2 + 65536);
  std::optional<StepWindow> window = whole_window();
  CHECK(window && window->first == 32770 && window->count == 32768);
  CHECK(window->periods_ns.size() >= 2048 && window->periods_ns.size() < 4096);
}

TEST(a_forked_child_follows_no_steps) {
  begin();
  scopes(5);
  forget_steps_after_fork();
  scopes(5);
  CHECK(step_marks() == 0 && !whole_window());
}

TEST(names_that_come_once_do_not_hide_the_steps) {
  begin();
  for (int i = 0; i < 100; ++i)
    mark_step(StepMark::kScope, std::string(static_cast<size_t>(i + 1), 'x'));
  scopes(4);
  CHECK_EQ(step_marks(), 4);
}

TEST(steps_are_those_of_one_thread) {
  begin();
  scopes(5);
  std::thread([] { scopes(50); }).join();
  CHECK_EQ(step_marks(), 5);
}

TEST(after_a_pause_windows_begin_anew) {
  begin();
  scopes(2 + 9);
  restart_steps();
  CHECK(!whole_window());
  scopes(3);
  CHECK(step_marks() == 14 && g_firsts == 2);
  CHECK(whole_window() && whole_window()->first == 12 && whole_window()->count == 1);
}
