#include "context/thread/task_stacks.h"

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "calltree/context_tree.h"
#include "check.h"
#include "context/thread/steps.h"
#include "context/thread/thread_state.h"

using namespace proton;

namespace {

// Contexts of a made-up interpreter: numbers, and from which ones they were entered.
RunningContext g_running;
std::map<const void *, const void *> g_around;

constexpr TaskSource kSource{[]() noexcept { return g_running; },
                             [](const void *context) noexcept { return g_around[context]; }};

const void *context(uintptr_t number) { return reinterpret_cast<const void *>(number); }

void run(uintptr_t number, uintptr_t around = 0) {
  set_task_source(&kSource);
  g_running = {context(number), g_running.version + 1};
  g_around[context(number)] = context(around);
}

SessionState listening() {
  SessionState now;
  now.epoch = 1;
  now.generation = 1;
  now.active = true;
  return now;
}

/// A task whose context runs, below what stands on the stack; as Python's part makes it.
void add(uintptr_t number, ContextId base = 0, bool inherits = false) {
  static char object;
  auto *reference = reinterpret_cast<_object *>(&object); // never used
  this_thread().tasks.add(this_thread(), context(number), base,
                          {reference, inherits ? reference : nullptr});
}

StackEntry &push(std::string_view name) {
  return this_thread().stack.push(hashed(name), FrameKind::kScope, listening());
}

std::string path() {
  std::string text;
  for (ContextId id = this_thread().stack.current(listening()); id != 0;
       id = ContextTree::instance().node(id).parent)
    text = std::string(ContextTree::instance().node(id).name.text()) + "/" + text;
  return text;
}

/// Each test on a thread of its own.
template <typename Body> void on_a_thread(Body &&body) { std::thread(body).join(); }

void forget(uintptr_t number) { this_thread().tasks.drop(this_thread(), context(number)); }

} // namespace

TEST(each_task_has_frames_of_its_own) {
  on_a_thread([] {
    push("home");
    ContextId home = this_thread().stack.own();
    run(1);
    add(1, home);
    push("one");
    run(2);
    CHECK_EQ(path(), "home/");
    add(2, home);
    push("two");
    CHECK_EQ(path(), "home/two/");
    run(1);
    CHECK_EQ(path(), "home/one/");
    run(0);
    CHECK_EQ(path(), "home/");
    run(2);
    CHECK_EQ(path(), "home/two/");
    forget(1), forget(2);
    run(0);
    CHECK_EQ(path(), "home/");
    CHECK(!this_thread().tasks.are_there());
  });
}

TEST(a_context_without_frames_has_those_of_the_context_around) {
  on_a_thread([] {
    run(1);
    add(1);
    push("one");
    run(3, 1);
    CHECK_EQ(path(), "one/");
    push("inner");
    run(1);
    CHECK_EQ(path(), "one/inner/");
    forget(1);
  });
}

TEST(empty_frames_go_unless_they_began_below_a_path) {
  on_a_thread([] {
    SessionState now = listening();
    ContextId home = push("home").id;
    run(1);
    add(1);
    push("one");
    CHECK(!this_thread().tasks.drop_empty(this_thread()).watch);
    this_thread().stack.pop(now);
    CHECK(this_thread().tasks.drop_empty(this_thread()).watch);
    CHECK_EQ(path(), "home/");
    add(1, home, true);
    CHECK(!this_thread().tasks.drop_empty(this_thread()).watch);
    CHECK(this_thread().tasks.are_there());
    forget(1);
  });
}

TEST(frames_of_a_context_that_died_go_when_another_one_runs) {
  on_a_thread([] {
    run(1);
    add(1);
    push("one");
    forget(1);
    run(1); // another one with its address
    CHECK_EQ(path(), "");
    CHECK_EQ(this_thread().stack.depth(), 0);
    CHECK(!this_thread().tasks.are_there());
  });
}

TEST(scopes_outlive_the_context_of_their_task) {
  for (bool is_on_stack : {false, true})
    on_a_thread([&] {
      run(1);
      add(1);
      push("one").is_held = true;
      const uint64_t number = this_thread().stack.top().scope_id();
      if (!is_on_stack)
        run(0);
      CHECK_EQ(path(), is_on_stack ? "one/" : "");
      forget(1);
      run(0);
      CHECK_EQ(path(), "");
      CHECK(find_expired(number).has_value());
      CHECK(forget_expired(number));
    });
}

TEST(a_task_in_a_state_keeps_its_frames) {
  on_a_thread([] {
    run(1);
    add(1);
    this_thread().stack.enter_state("s", listening());
    CHECK(!this_thread().tasks.drop_empty(this_thread()).watch);
    this_thread().stack.exit_state(listening());
    CHECK(this_thread().tasks.drop_empty(this_thread()).watch);
  });
}

TEST(nothing_is_followed_without_a_source) {
  on_a_thread([] {
    run(1);
    add(1);
    push("one");
    run(0);
    set_task_source(nullptr);
    CHECK_EQ(path(), "one/");
    run(0);
    CHECK_EQ(path(), "");
    forget(1);
  });
}

TEST(other_threads_see_frames_that_stand_aside) {
  on_a_thread([] {
    run(1);
    add(1);
    StackEntry &entry = push("one");
    entry.set_start(7);
    const uint64_t number = entry.scope_id();
    const ContextId id = entry.id;
    run(0);
    ShadowStack &stack = this_thread().stack;
    std::thread([&] {
      std::optional<OpenScope> scope = stack.find_scope(number);
      CHECK(scope && scope->id == id && scope->start_ns == 7);
      std::vector<ContextId> ids;
      stack.append_ids(ids);
      CHECK(std::find(ids.begin(), ids.end(), id) != ids.end());
      std::vector<OpenScope> open;
      stack.append_open(open);
      CHECK(open.size() == 1 && open[0].id == id);
      CHECK(stack.end_from_elsewhere(0, number));
    }).join();
    stack.settle(listening());
    CHECK(!stack.find_scope(number));
    run(1);
    CHECK_EQ(path(), "");
    forget(1);
  });
}

TEST(the_end_of_a_thread_closes_the_frames_of_its_tasks) {
  uint64_t number = 0;
  ContextId base = 0;
  ThreadState *state = nullptr;
  on_a_thread([&] {
    state = &this_thread();
    base = push("home").id;
    run(1);
    add(1, base);
    push("one").is_held = true;
    number = this_thread().stack.top().scope_id();
    run(0);
    CHECK_EQ(path(), "home/");
  });
  CHECK(!state->stack.find_scope(number));
  std::vector<ContextId> ids;
  state->stack.append_ids(ids);
  CHECK(std::find(ids.begin(), ids.end(), base) == ids.end());
  CHECK(find_expired(number).has_value());
  CHECK(forget_expired(number));
  state->tasks.drop(*state, context(1));
}

TEST(a_held_path_is_kept_by_a_collection) {
  on_a_thread([] {
    const ContextId id = push("held").id;
    CHECK(hold_path(id) && hold_path(id));
    this_thread().stack.pop(listening());
    auto is_root = [&] {
      std::vector<ContextId> ids;
      append_expired(ids);
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    CHECK(is_root());
    release_path(id);
    CHECK(is_root());
    release_path(id);
    CHECK(!is_root());
  });
}

TEST(scopes_of_tasks_are_no_steps) {
  on_a_thread([] {
    follow_steps([](bool) noexcept {});
    run(1);
    add(1);
    for (int i = 0; i < 8; ++i)
      mark_step(StepMark::kScope, "request");
    CHECK_EQ(step_marks(), 0);
    run(0);
    for (int i = 0; i < 8; ++i)
      mark_step(StepMark::kScope, "step");
    CHECK_EQ(step_marks(), 8);
    follow_steps(nullptr);
    forget(1);
  });
}
