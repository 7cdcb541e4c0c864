// During a hold, threads of the target wait at the entry of a call, and only there.
#include "collector/gpu/launches/launch_thread.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "check.h"
#include "context/python/python_lock.h"
#include "context/thread/host_range.h"

using namespace proton;

namespace {

constexpr uint32_t kLongMs = 20'000; // longer than any wait
constexpr uint32_t kShortMs = 20;

/// A thread inside a call until the test lets it leave.
class Caller {
public:
  Caller()
      : thread_([this] {
          enter_call(*this_launch_thread());
          is_inside_ = true;
          while (!shall_leave_)
            std::this_thread::yield();
          is_inside_ = false;
          this_launch_thread()->leave();
        }) {}
  ~Caller() { leave(); }
  void leave() {
    shall_leave_ = true;
    if (thread_.joinable())
      thread_.join();
  }
  void wait_until_inside() const {
    while (!is_inside_)
      std::this_thread::yield();
  }
  bool is_inside() const { return is_inside_; }

private:
  std::atomic<bool> is_inside_{false};
  std::atomic<bool> shall_leave_{false};
  std::thread thread_;
};

/// Stands for Python's lock.
std::mutex g_python;
thread_local bool t_has_python = false;

const PythonLock kLock{[]() noexcept -> void * {
                         if (!t_has_python)
                           return nullptr;
                         t_has_python = false;
                         g_python.unlock();
                         return &g_python;
                       },
                       [](void *) noexcept {
                         g_python.lock();
                         t_has_python = true;
                       }};

bool can_have_python() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!g_python.try_lock()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::yield();
  }
  g_python.unlock();
  return true;
}

} // namespace

TEST(a_hold_is_complete_if_no_thread_is_inside) {
  LaunchHold hold(kLongMs);
  CHECK(hold.is_complete());
  CHECK(LaunchHold::is_set());
}

TEST(a_call_that_does_not_end_leaves_the_hold_incomplete) {
  Caller caller;
  caller.wait_until_inside();
  CHECK(!LaunchHold(kShortMs).is_complete());
  CHECK(!LaunchHold::is_set());
  caller.leave();
  CHECK(LaunchHold(kLongMs).is_complete());
}

TEST(a_hold_waits_for_calls_that_are_open) {
  auto caller = std::make_unique<Caller>();
  caller->wait_until_inside();
  std::thread ending([&] { caller->leave(); });
  LaunchHold hold(kLongMs);
  CHECK(hold.is_complete());
  CHECK(!caller->is_inside());
  ending.join();
}

TEST(calls_begin_once_the_last_hold_ends) {
  std::unique_ptr<Caller> caller;
  {
    LaunchHold hold(kLongMs);
    caller = std::make_unique<Caller>();
    LaunchHold again(kLongMs); // the thread's own
    CHECK(again.is_complete());
    CHECK(wait_for_open_calls(kShortMs));
    CHECK(!caller->is_inside());
  }
  caller->wait_until_inside();
}

TEST(the_thread_that_holds_may_call) {
  LaunchHold hold(kLongMs);
  LaunchThread *thread = this_launch_thread();
  enter_call(*thread);
  CHECK(thread->is_inside());
  thread->leave();
}

TEST(only_one_thread_holds_at_a_time) {
  LaunchHold hold(kLongMs);
  bool is_complete = true;
  std::thread([&] { is_complete = LaunchHold(kShortMs).is_complete(); }).join();
  CHECK(!is_complete);
  CHECK(LaunchHold::is_set());
}

TEST(a_thread_that_waits_leaves_python_to_others) {
  set_python_lock(&kLock);
  std::atomic<bool> is_ready{false};
  std::thread waiting;
  {
    LaunchHold hold(kLongMs);
    waiting = std::thread([&] {
      g_python.lock();
      t_has_python = true;
      is_ready = true;
      enter_call(*this_launch_thread());
      CHECK(t_has_python);
      this_launch_thread()->leave();
      t_has_python = false;
      g_python.unlock();
    });
    while (!is_ready)
      std::this_thread::yield();
    CHECK(can_have_python());
  }
  waiting.join();
  set_python_lock(nullptr);
}

TEST(a_thread_that_holds_waits_for_calls_that_need_python) {
  set_python_lock(&kLock);
  Caller caller;
  caller.wait_until_inside();
  g_python.lock();
  t_has_python = true;
  std::thread ending([&] {
    CHECK(can_have_python());
    caller.leave();
  });
  CHECK(LaunchHold(kLongMs).is_complete());
  CHECK(t_has_python);
  ending.join();
  t_has_python = false;
  g_python.unlock();
  set_python_lock(nullptr);
}

TEST(the_listener_of_a_scope_may_wait_for_python) {
  set_python_lock(&kLock);
  static std::atomic<int> calls{0};
  set_scope_border([](bool) noexcept { calls += t_has_python ? 0 : 1; });
  publish_session_state({.epoch = 1, .generation = 1, .active = true});
  g_python.lock();
  t_has_python = true;
  open_scope(hashed("s"), FrameKind::kScope, session_state());
  close_top(session_state());
  CHECK(t_has_python);
  CHECK_EQ(calls, 2);
  t_has_python = false;
  g_python.unlock();
  publish_session_state({});
  set_scope_border(nullptr);
  set_python_lock(nullptr);
}
