#include "support/fork_locks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "check.h"

using namespace proton;

namespace {

// Whether another thread finds the mutex free.
bool is_free(std::mutex &mutex) {
  bool free = false;
  std::thread([&] {
    free = mutex.try_lock();
    if (free)
      mutex.unlock();
  }).join();
  return free;
}

int code_of_child(int (*body)(std::mutex &), std::mutex &mutex) {
  std::fflush(stdout);
  lock_for_fork();
  pid_t child = fork();
  if (child == 0) {
    unlock_in_child();
    _exit(body(mutex));
  }
  unlock_in_parent();
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int lock_and_leave(std::mutex &mutex) {
  mutex.lock();
  return 7;
}

} // namespace

TEST(guarded_locks_are_held_until_the_fork_is_over) {
  std::mutex mutex;
  guard_across_fork(mutex, LockRank::kNames);
  lock_for_fork();
  CHECK(!is_free(mutex));
  unlock_in_parent();
  CHECK(is_free(mutex));
  forget_across_fork(LockRank::kNames);
  lock_for_fork();
  CHECK(is_free(mutex));
  unlock_in_parent();
}

TEST(a_child_knows_whether_a_lock_was_passed_over) {
  static std::mutex mutex;
  guard_across_fork(mutex, LockRank::kAggregator);
  auto knows = [](std::mutex &) { return was_forked_in_a_change() ? 1 : 0; };
  CHECK_EQ(code_of_child(knows, mutex), 0);
  mutex.lock();
  CHECK_EQ(code_of_child(knows, mutex), 1);
  mutex.unlock();
  CHECK(!was_forked_in_a_change());
  forget_across_fork(LockRank::kAggregator);
}

TEST(a_child_can_take_a_lock_that_threads_of_the_parent_keep_taking) {
  static std::mutex mutex;
  guard_across_fork(mutex, LockRank::kAggregator);
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done.load())
      std::lock_guard lock(mutex);
  });
  for (int i = 0; i < 20; ++i)
    CHECK_EQ(code_of_child(lock_and_leave, mutex), 7);
  done.store(true);
  busy.join();
  forget_across_fork(LockRank::kAggregator);
}

TEST(a_lock_that_its_holder_never_gives_back_is_made_anew_in_the_child) {
  static std::mutex mutex;
  guard_across_fork(mutex, LockRank::kAggregator);
  mutex.lock();
  CHECK_EQ(code_of_child(lock_and_leave, mutex), 7);
  CHECK(!is_free(mutex));
  mutex.unlock();
  forget_across_fork(LockRank::kAggregator);
}
