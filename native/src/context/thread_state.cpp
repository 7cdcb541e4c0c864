#include "context/thread_state.h"

#include <pthread.h>

#include <memory>
#include <mutex>
#include <vector>

#include "support/fork_locks.h"

namespace proton {
namespace {

struct ThreadList {
  ThreadList() { guard_across_fork(mutex, LockRank::kThreads); }
  std::mutex mutex;
  std::vector<std::unique_ptr<ThreadState>> all;
  std::vector<ThreadState *> unused;
};

ThreadList &threads() {
  static ThreadList *list = new ThreadList; // outlives threads of the target
  return *list;
}

// Initial-exec: one instruction instead of a call per access; the module needs 8 bytes of it.
[[gnu::tls_model("initial-exec")]] thread_local ThreadState *t_state = nullptr;

/// Returns the state to the list when its thread ends. A destructor of a pthread key, because
/// those run after the destructors of all thread_local objects, which may still open scopes, and
/// run again when one of them does so even later.
void end_thread(void *ended) noexcept {
  auto *state = static_cast<ThreadState *>(ended);
  t_state = nullptr;
  state->stack.leave(situation());
  ThreadList &list = threads();
  std::lock_guard lock(list.mutex);
  list.unused.push_back(state); // `adopt` made room
}

/// Where the system has no key left, states of ended threads are not used again.
void at_thread_end(ThreadState *state) noexcept {
  static pthread_key_t key{};
  static const bool has_key = pthread_key_create(&key, end_thread) == 0;
  if (has_key)
    pthread_setspecific(key, state);
}

ThreadState &adopt() {
  ThreadList &list = threads();
  ThreadState *state = nullptr;
  {
    std::lock_guard lock(list.mutex);
    if (list.unused.empty()) {
      list.all.push_back(std::make_unique<ThreadState>());
      list.unused.reserve(list.all.capacity());
      list.unused.push_back(list.all.back().get());
    }
    state = list.unused.back();
    list.unused.pop_back();
  }
  at_thread_end(state);
  t_state = state;
  return *state;
}

} // namespace

ThreadState &this_thread() { return t_state ? *t_state : adopt(); }

void for_each_thread(const std::function<void(ThreadState &)> &visit) {
  ThreadList &list = threads();
  std::lock_guard lock(list.mutex);
  for (auto &state : list.all)
    visit(*state);
}

void reset_threads_after_fork() noexcept {
  for (auto &state : threads().all)
    state->stack.clear();
}

} // namespace proton
