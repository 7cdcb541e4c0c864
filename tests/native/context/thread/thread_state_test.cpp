#include "context/thread/thread_state.h"

#include <pthread.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "check.h"

using namespace proton;

namespace {

size_t thread_count() {
  size_t count = 0;
  for_each_thread([&](ThreadState &) { ++count; });
  return count;
}

// Constructed before the thread has a state, and therefore destroyed after it.
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

TEST(a_thread_that_uses_a_state_again_has_another_number) {
  uint32_t first = kNoThread, second = kNoThread;
  std::thread([&] { first = this_thread().number; }).join();
  std::thread([&] { second = this_thread().number; }).join();
  CHECK(first != kNoThread && second != kNoThread && first != second);
}

TEST(a_log_says_which_thread_wrote_what_follows) {
  std::vector<uint64_t> written;
  auto launch = [&] {
    LaunchRecord record;
    record.correlation_id = 1'000'000 + this_thread().number;
    written.push_back(this_thread().number);
    this_thread().launches.append(record);
  };
  std::thread(launch).join();
  std::thread(launch).join();
  std::vector<uint64_t> read;
  for_each_thread([&](ThreadState &state) {
    state.launches.consume([&](const LaunchEntry &entry) {
      if (entry.kind() == LaunchEntryKind::kThread)
        state.launching = entry.thread.number;
      else if (entry.launch.correlation_id == 1'000'000 + state.launching)
        read.push_back(state.launching);
    });
  });
  CHECK((read == written));
}

TEST(labels_are_kept_for_threads_that_ended_and_forgotten_after_thousands) {
  auto label_of = [](uint32_t number) {
    ThreadLabel label;
    for_each_thread([&](ThreadState &) { label = label_of_thread(number); });
    return label;
  };
  uint32_t ended = 0;
  int64_t id = 0;
  std::thread([&] {
    ended = this_thread().number;
    id = gettid();
    pthread_setname_np(pthread_self(), "loader");
  }).join();
  CHECK_EQ(label_of(ended).name, "loader");
  CHECK_EQ(label_of(ended).thread_id, id);
  pthread_setname_np(pthread_self(), "renamed");
  CHECK_EQ(label_of(this_thread().number).name, "renamed");
  for (int i = 0; i < 4096; ++i)
    std::thread([] { this_thread(); }).join();
  CHECK_EQ(label_of(ended).thread_id, 0);
  CHECK_EQ(label_of(this_thread().number).thread_id, gettid());
}

TEST(records_of_an_ended_thread_are_still_there) {
  std::thread([] {
    LaunchRecord record;
    record.correlation_id = 77;
    this_thread().launches.append(record);
  }).join();
  std::set<uint64_t> seen;
  for_each_thread([&](ThreadState &thread) {
    thread.launches.consume([&](const LaunchEntry &entry) {
      if (entry.kind() == LaunchEntryKind::kLaunch)
        seen.insert(entry.launch.correlation_id);
    });
  });
  CHECK(seen.contains(77));
}

TEST(frames_of_an_ended_thread_are_forgotten) {
  SessionState now;
  now.epoch = now.generation = 1;
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
