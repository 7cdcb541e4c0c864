#include "context/thread/thread_state.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "context/python/python_thread_name.h"
#include "context/thread/shadow_stack.h"
#include "support/fork_locks.h"

namespace proton {
namespace {

constexpr size_t kEndedLabels = 4096; ///< that are kept for events which come later

struct Label {
  pid_t thread_id = 0;
  pthread_t handle{}; ///< valid until it has ended
  bool has_ended = false;
  char name[16] = {}; ///< what the system has room for; of one that has ended
  std::string given;  ///< by Python; may be empty
};

struct ThreadList {
  ThreadList() { guard_across_fork(mutex, LockRank::kThreads); }
  std::mutex mutex;
  std::atomic<ThreadState *> first{nullptr}; ///< read without the lock; states live for ever
  ThreadState *last = nullptr;
  size_t count = 0;
  std::vector<ThreadState *> unused;
  std::unordered_map<uint32_t, Label> labels;         ///< by number
  std::array<uint32_t, kEndedLabels> ended_numbers{}; ///< a ring
  uint64_t ended = 0;
  uint32_t next_number = 0;

  void end(uint32_t number) noexcept {
    auto found = labels.find(number);
    if (found == labels.end())
      return;
    Label &label = found->second;
    pthread_getname_np(label.handle, label.name, sizeof(label.name));
    label.has_ended = true;
    uint32_t &place = ended_numbers[ended % kEndedLabels];
    if (ended >= kEndedLabels)
      labels.erase(place);
    place = number;
    ++ended;
  }
};

ThreadList &threads() {
  static ThreadList *list = new ThreadList; // the target's threads may need it to the end
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
  state->handle.store(0, std::memory_order_release);
  SessionState now = session_state();
  state->stack.settle(now);
  keep_expired(state->stack, state->number);
  state->stack.leave(now);
  ThreadList &list = threads();
  std::lock_guard lock(list.mutex);
  list.end(state->number);
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
      if (list.unused.capacity() == list.count) // so that the end of a thread needs no memory
        list.unused.reserve(2 * list.count + 1);
      auto *fresh = new ThreadState;
      (list.last ? list.last->next : list.first).store(fresh, std::memory_order_release);
      list.last = fresh;
      ++list.count;
      list.unused.push_back(fresh);
    }
    state = list.unused.back();
    list.labels[list.next_number] = {.thread_id = gettid(), .handle = pthread_self(), .given = {}};
    state->number = list.next_number++;
    list.unused.pop_back();
  }
  ThreadChange change; // launches of the thread before may still be in the log
  change.number = state->number;
  state->launches.append(change);
  state->tasks.renew();
  at_thread_end(state);
  t_state = state;
  state->handle.store(static_cast<uint64_t>(pthread_self()), std::memory_order_release);
  if (std::string name = python_thread_name(); !name.empty()) { // which may ask for this state
    std::lock_guard lock(list.mutex);
    if (auto found = list.labels.find(state->number); found != list.labels.end())
      found->second.given = std::move(name);
  }
  return *state;
}

} // namespace

ThreadState &this_thread() {
  ThreadState &state = t_state ? *t_state : adopt();
  if (state.tasks.are_there()) [[unlikely]]
    state.tasks.follow(state);
  return state;
}

ThreadState *first_thread() noexcept { return threads().first.load(std::memory_order_acquire); }

ThreadLabel label_of_thread(uint32_t number) {
  ThreadList &list = threads();
  std::lock_guard lock(list.mutex);
  auto found = list.labels.find(number);
  if (found == list.labels.end())
    return {};
  Label &label = found->second;
  if (!label.given.empty())
    return {label.thread_id, label.given};
  if (!label.has_ended) // its end would wait for the list
    pthread_getname_np(label.handle, label.name, sizeof(label.name));
  return {label.thread_id, label.name};
}

void reset_threads_after_fork() noexcept {
  ThreadList &list = threads();
  clear_expired();
  for_each_thread([](ThreadState &state) {
    state.stack.clear();
    if (&state != t_state)
      state.handle.store(0, std::memory_order_release);
  });
  for (auto &[number, label] : list.labels) {
    bool is_here = t_state && t_state->number == number;
    if (is_here)
      label.thread_id = gettid();
    else
      label.has_ended = true;
  }
}

} // namespace proton
