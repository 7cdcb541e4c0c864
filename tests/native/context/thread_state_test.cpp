#include "context/thread_state.h"

#include <set>
#include <thread>

#include "check.h"

using namespace proton;

namespace {

size_t thread_count() {
  size_t count = 0;
  for_each_thread([&](ThreadState &) { ++count; });
  return count;
}

// Constructed before the thread has a state, so destroyed after everything of that thread which was
// constructed later.
struct UsesTheStateAtTheEnd {
  ~UsesTheStateAtTheEnd() { this_thread(); }
  bool is_used = false;
};
thread_local UsesTheStateAtTheEnd t_late;

} // namespace

TEST(a_thread_has_one_state_of_its_own) {
  ThreadState *mine = &this_thread();
  ThreadState *other = nullptr;
  std::thread([&] { other = &this_thread(); }).join();
  CHECK(mine == &this_thread());
  CHECK(other != nullptr && other != mine);
}

TEST(states_of_ended_threads_are_used_again) {
  std::thread([] { this_thread(); }).join();
  size_t before = thread_count();
  for (int i = 0; i < 50; ++i)
    std::thread([] { this_thread(); }).join();
  CHECK_EQ(thread_count(), before);
}

TEST(records_of_an_ended_thread_are_still_there) {
  std::thread([] {
    LaunchRecord record;
    record.correlation_id = 77;
    this_thread().launches.append(record);
  }).join();
  std::set<uint64_t> seen;
  for_each_thread([&](ThreadState &thread) {
    thread.launches.consume(
        [&](const LaunchRecord &record) { seen.insert(record.correlation_id); });
  });
  CHECK(seen.contains(77));
}

TEST(frames_of_an_ended_thread_are_forgotten) {
  Situation now;
  now.epoch = now.birth = 1;
  now.active = true;
  ThreadState *ended = nullptr;
  std::thread([&] {
    ended = &this_thread();
    ended->stack.push(hashed("open at the end"), FrameKind::kScope, now);
  }).join();
  CHECK_EQ(ended->stack.depth(), 0);
}

TEST(a_state_used_by_the_last_destructor_of_a_thread_is_used_again_too) {
  auto run = [] {
    t_late.is_used = true;
    this_thread();
  };
  std::thread(run).join();
  size_t before = thread_count();
  for (int i = 0; i < 20; ++i)
    std::thread(run).join();
  CHECK_EQ(thread_count(), before);
}
