#include "context/python/python_lock.h"

#include <atomic>

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

} // namespace proton
