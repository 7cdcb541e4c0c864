#include "support/name.h"

#include <mutex>
#include <unordered_map>

#include "support/fork_locks.h"

namespace proton {
namespace {

struct NameTable {
  NameTable() { guard_across_fork(mutex, LockRank::kNames); }
  std::mutex mutex;
  // Keys view the text inside the entry, so each text exists once.
  std::unordered_map<std::string_view, detail::NameEntry *> entries;
};

// Never destroyed: threads of the target may release names after static destruction began.
NameTable &table() {
  static NameTable *instance = new NameTable;
  return *instance;
}

} // namespace

Name::Name(std::string_view text) {
  NameTable &names = table();
  std::lock_guard lock(names.mutex);
  auto found = names.entries.find(text);
  if (found != names.entries.end()) {
    entry_ = found->second;
    retain();
    return;
  }
  entry_ = new detail::NameEntry;
  entry_->text.assign(text);
  entry_->references.store(1, std::memory_order_relaxed);
  names.entries.emplace(entry_->text, entry_);
}

void Name::release() noexcept {
  if (!entry_)
    return;
  detail::NameEntry *entry = std::exchange(entry_, nullptr);
  uint32_t seen = entry->references.load(std::memory_order_relaxed);
  // The last reference is given up under the lock only, so a concurrent lookup cannot revive it.
  while (seen > 1) {
    if (entry->references.compare_exchange_weak(seen, seen - 1, std::memory_order_release))
      return;
  }
  NameTable &names = table();
  std::lock_guard lock(names.mutex);
  if (entry->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    names.entries.erase(entry->text);
    delete entry;
  }
}

size_t live_name_count() {
  NameTable &names = table();
  std::lock_guard lock(names.mutex);
  return names.entries.size();
}

} // namespace proton
