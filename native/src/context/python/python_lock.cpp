#include "context/python/python_lock.h"

#include <Python.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#define PY_SSIZE_T_CLEAN

namespace proton {
namespace {

std::atomic<const PythonLock *> g_lock{nullptr};

} // namespace

void set_python_lock(const PythonLock *lock) noexcept {
  g_lock.store(lock, std::memory_order_release);
}

WithoutPythonLock::WithoutPythonLock() noexcept
    : lock_(g_lock.load(std::memory_order_acquire)), held_(lock_ ? lock_->give_up() : nullptr) {}

WithoutPythonLock::~WithoutPythonLock() {
  if (held_)
    lock_->take_back(held_);
}

namespace {

std::atomic<uint32_t> g_waiting{0};
std::atomic<bool> g_is_closed{false};

} // namespace

bool begin_python_wait() noexcept {
  g_waiting.fetch_add(1);
  if (!g_is_closed.load())
    return true;
  g_waiting.fetch_sub(1);
  return false;
}

void end_python_wait() noexcept { g_waiting.fetch_sub(1); }

MayWait::MayWait() noexcept
    : has_begun_(begin_python_wait()), is_allowed_(has_begun_ || PyGILState_Check()) {}

MayWait::~MayWait() {
  if (has_begun_)
    end_python_wait();
}

void end_python_calls() noexcept {
  constexpr timespec kPause{0, 1'000'000};
  g_is_closed.store(true);
  PyThreadState *state = PyEval_SaveThread();
  for (int tries = 0; tries < 1000 && g_waiting.load() != 0; ++tries)
    nanosleep(&kPause, nullptr);
  PyEval_RestoreThread(state);
}

void forget_python_calls_after_fork() noexcept { g_waiting.store(0); }

} // namespace proton
