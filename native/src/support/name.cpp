#include "support/name.h"

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "support/fork_locks.h"

namespace proton {
namespace {

struct NameTable {
  NameTable() { guard_across_fork(mutex, LockRank::kNames); }
  // Keys view the text inside the entry, so each text exists once.
  using Entries = std::unordered_map<std::string_view, detail::NameEntry *>;
  static constexpr size_t kParts = 1024;

  Entries &part(std::string_view text) {
    return parts[std::hash<std::string_view>()(text) / 64 % kParts];
  }

  std::mutex mutex;
  /// Many small tables: one that grows blocks every thread that adds to it.
  std::array<Entries, kParts> parts;
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
  NameTable::Entries &entries = names.part(text);
  auto found = entries.find(text);
  if (found != entries.end()) {
    entry_ = found->second;
    retain();
    return;
  }
  auto fresh = std::make_unique<detail::NameEntry>();
  fresh->text.assign(text);
  fresh->references.store(1, std::memory_order_relaxed);
  entries.emplace(fresh->text, fresh.get());
  entry_ = fresh.release();
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
    names.part(entry->text).erase(entry->text);
    delete entry;
  }
}

size_t live_name_count() {
  NameTable &names = table();
  std::lock_guard lock(names.mutex);
  size_t count = 0;
  for (const NameTable::Entries &part : names.parts)
    count += part.size();
  return count;
}

} // namespace proton
