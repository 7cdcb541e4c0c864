#include "context/thread_state.h"

#include <memory>
#include <mutex>
#include <vector>

namespace proton {
namespace {

struct ThreadList {
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

/// Returns the state to the list when its thread ends.
struct Owner {
  ~Owner() {
    ThreadState *state = t_state;
    t_state = nullptr;
    if (!state)
      return;
    if (starting_stack() == &state->stack)
      set_starting_stack(nullptr);
    state->stack.clear();
    std::lock_guard lock(threads().mutex);
    threads().unused.push_back(state);
  }
  bool armed = false;
};
thread_local Owner t_owner;

ThreadState &adopt() {
  ThreadList &list = threads();
  std::lock_guard lock(list.mutex);
  if (!list.unused.empty()) {
    t_state = list.unused.back();
    list.unused.pop_back();
  } else {
    list.all.push_back(std::make_unique<ThreadState>());
    t_state = list.all.back().get();
  }
  t_owner.armed = true; // first access registers the destructor for this thread
  return *t_state;
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
  // Only the forking thread exists; a lock that another thread held is gone with it.
  new (&threads().mutex) std::mutex;
  for (auto &state : threads().all)
    state->stack.clear();
}

} // namespace proton
