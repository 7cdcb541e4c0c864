#include "context/thread/expired_scopes.h"

#include <mutex>
#include <unordered_map>

#include "support/fork_locks.h"

namespace proton {
namespace {

struct Expired {
  Expired() { guard_across_fork(mutex, LockRank::kExpired); }
  std::mutex mutex;
  std::unordered_map<uint64_t, OpenScope> scopes; ///< by number
};

Expired &expired() {
  static Expired *instance = new Expired; // outlives threads of the target
  return *instance;
}

} // namespace

void keep_expired(ShadowStack &stack, uint32_t thread) noexcept {
  for (uint32_t i = 0; i < stack.depth(); ++i) {
    const StackEntry &entry = stack.entry(i);
    if (!entry.is_held || entry.has_ended())
      continue;
    try {
      Expired &all = expired();
      std::lock_guard lock(all.mutex);
      all.scopes[entry.scope_id()] = {entry.id.load(), entry.start(), thread};
    } catch (...) { // no memory: it ends without a time
    }
  }
}

std::optional<OpenScope> find_expired(uint64_t scope_id) {
  Expired &all = expired();
  std::lock_guard lock(all.mutex);
  auto found = all.scopes.find(scope_id);
  return found == all.scopes.end() ? std::nullopt : std::optional(found->second);
}

bool forget_expired(uint64_t scope_id) noexcept {
  Expired &all = expired();
  std::lock_guard lock(all.mutex);
  return all.scopes.erase(scope_id) != 0;
}

void append_expired(std::vector<ContextId> &ids) {
  Expired &all = expired();
  std::lock_guard lock(all.mutex);
  for (const auto &[number, scope] : all.scopes)
    ids.push_back(scope.id);
}

void clear_expired() noexcept { expired().scopes.clear(); }

} // namespace proton
