#include "context/thread/shadow_stack.h"

#include <memory>
#include <thread>
#include <vector>

#include "calltree/context_tree.h"
#include "check.h"
#include "support/error.h"

using namespace proton;

namespace {

SessionState listening() {
  SessionState now;
  now.epoch = 1;
  now.generation = 1;
  now.active = true;
  return now;
}

// "outer/inner" for a context, from the root down.
std::string path(ContextId id) {
  std::string text;
  for (; id != 0; id = ContextTree::instance().node(id).parent)
    text = std::string(ContextTree::instance().node(id).name.text()) + (text.empty() ? "" : "/") +
           text;
  return text;
}

// Stacks live as long as the process, like those of threads: their blocks are never freed.
ShadowStack *stack() {
  static auto *all = new std::vector<std::unique_ptr<ShadowStack>>;
  all->push_back(std::make_unique<ShadowStack>());
  return all->back().get();
}

} // namespace

TEST(pushes_nest_and_pops_restore) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  frames->push(hashed("outer"), FrameKind::kScope, now);
  frames->push(hashed("inner"), FrameKind::kScope, now);
  CHECK_EQ(path(frames->current(now)), "outer/inner");
  frames->pop(now);
  CHECK_EQ(path(frames->current(now)), "outer");
  frames->pop(now);
  CHECK_EQ(path(frames->current(now)), "");
  CHECK_EQ(frames->depth(), 0);
}

TEST(a_scope_opened_again_has_the_same_context_and_another_scope_id) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  ContextId first = frames->push(hashed("loop"), FrameKind::kScope, now).id;
  uint64_t first_scope = frames->top().scope_id();
  frames->pop(now);
  CHECK_EQ(frames->push(hashed("loop"), FrameKind::kScope, now).id.load(), first);
  CHECK(frames->top().scope_id() != first_scope);
  frames->pop(now);
}

TEST(names_longer_than_the_cache_holds_work_as_well) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  std::string name(5000, 'n');
  frames->push(hashed(name), FrameKind::kScope, now);
  CHECK_EQ(path(frames->current(now)), name);
  frames->pop(now);
}

TEST(names_with_equal_hashes_are_distinguished) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  ContextId a = frames->push({"a", 7}, FrameKind::kScope, now).id;
  frames->pop(now);
  ContextId b = frames->push({"b", 7}, FrameKind::kScope, now).id;
  frames->pop(now);
  CHECK(a != b);
}

TEST(frames_opened_without_a_session_are_on_no_path) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  frames->push(hashed("outer"), FrameKind::kScope, now);
  frames->push_noop(hashed("silent"), FrameKind::kScope);
  CHECK_EQ(path(frames->current(now)), "outer");
  frames->push(hashed("inner"), FrameKind::kScope, now);
  CHECK_EQ(path(frames->current(now)), "outer/inner");
  CHECK_EQ(frames->pop_to(0, now), 3);
}

TEST(a_state_stands_below_the_scope_and_the_outer_one_comes_back) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  frames->push(hashed("scope"), FrameKind::kScope, now);
  frames->enter_state("first", now);
  frames->enter_state("second", now);
  CHECK_EQ(path(frames->current(now)), "scope/second");
  frames->exit_state(now);
  CHECK_EQ(path(frames->current(now)), "scope/first");
  frames->exit_state(now);
  CHECK_EQ(path(frames->current(now)), "scope");
  CHECK_THROWS(frames->exit_state(now), Error);
  frames->pop(now);
}

TEST(operators_carry_the_state_once) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  frames->enter_state("state", now);
  frames->push(hashed("op"), FrameKind::kOp, now);
  frames->push(hashed("nested"), FrameKind::kOp, now);
  CHECK_EQ(path(frames->current(now)), "state/op/nested");
  frames->pop_to(0, now);
  frames->exit_state(now);
}

TEST(launch_metadata_of_a_kernel_is_two_frames) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  frames->enter_state("__proton_launch_metadata:my_kernel", now);
  CHECK_EQ(path(frames->current(now)), "__proton_launch_metadata/my_kernel");
  frames->exit_state(now);
}

TEST(an_empty_stack_follows_the_starting_thread) {
  ShadowStack *starting = stack(), *other = stack();
  SessionState now = listening();
  set_starting_stack(ThreadStack(*starting));
  starting->push(hashed("backward"), FrameKind::kScope, now);
  CHECK_EQ(path(other->current(now)), "backward");
  other->push(hashed("own"), FrameKind::kScope, now);
  CHECK_EQ(path(other->current(now)), "backward/own");
  other->pop(now);
  starting->pop(now);
  CHECK_EQ(path(other->current(now)), "");
  set_starting_stack({});
}

TEST(ten_thousand_frames_are_held) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  for (int i = 0; i < 10'000; ++i)
    frames->push(hashed("level"), FrameKind::kScope, now);
  CHECK_EQ(ContextTree::instance().node(frames->current(now)).depth, 10'000);
  CHECK_EQ(frames->pop_to(0, now), 10'000);
}

TEST(a_collection_between_uses_gives_no_freed_context) {
  ShadowStack *frames = stack();
  SessionState now = listening();
  frames->push(hashed("cached"), FrameKind::kScope, now);
  frames->pop(now);
  ContextTree::instance().collect({}, [](std::vector<ContextId> &) {});
  frames->push(hashed("other"), FrameKind::kScope, now);
  frames->pop(now);
  frames->push(hashed("cached"), FrameKind::kScope, now);
  CHECK_EQ(path(frames->current(now)), "cached");
  CHECK(ContextTree::instance().node(frames->current(now)).live);
  frames->pop(now);
}

TEST(who_follows_during_a_collection_gets_no_freed_context) {
  ShadowStack *starting = stack(), *other = stack();
  SessionState now = listening(), later = listening();
  later.epoch = 50;
  set_starting_stack(ThreadStack(*starting));
  starting->push(hashed("ends during the collection"), FrameKind::kScope, now);
  ContextId followed = 0;
  std::thread follower;
  ContextTree::instance().collect({50}, [&](std::vector<ContextId> &) {
    if (follower.joinable())
      return; // of a later slice
    follower = std::thread([&] { followed = other->current(later); });
    starting->pop(now);
  });
  follower.join();
  CHECK(followed == 0 || ContextTree::instance().node(followed).live);
  set_starting_stack({});
}

TEST(the_end_of_a_frame_that_stands_for_nothing_is_not_a_use_of_its_parent) {
  ShadowStack *frames = stack();
  SessionState now = listening(), next_phase = listening();
  next_phase.epoch = 2;
  frames->push(hashed("outer"), FrameKind::kScope, now);
  frames->push_noop(hashed("silent"), FrameKind::kScope);
  CHECK(!frames->pop(next_phase));
  CHECK(frames->pop(next_phase)); // so that the phase shows "outer"
}

TEST(a_stack_that_was_left_leads_no_thread) {
  ShadowStack *starting = stack(), *other = stack();
  SessionState now = listening();
  ThreadStack ended(*starting);
  set_starting_stack(ended);
  starting->push(hashed("open at the end"), FrameKind::kScope, now);
  starting->leave(now);
  CHECK(starting_stack() == nullptr && ended.get() == nullptr);
  set_starting_stack(ended);
  starting->push(hashed("of the next thread"), FrameKind::kScope, now);
  CHECK_EQ(path(other->current(now)), "");
  CHECK(ThreadStack(*starting).get() == starting);
  starting->pop(now);
}

TEST(frames_left_open_keep_the_stamp_of_the_epoch_in_which_their_thread_ended) {
  ShadowStack *frames = stack();
  SessionState now = listening(), last = listening();
  last.epoch = 9;
  ContextId id = frames->push(hashed("left open"), FrameKind::kScope, now).id;
  frames->leave(last);
  CHECK_EQ(frames->depth(), 0);
  CHECK_EQ(ContextTree::instance().node(id).last_used.load(), 9);
}
