#include "context/thread/path_cache.h"

namespace proton {

void PathCache::keep(const PathStep &step, ContextId id) noexcept {
  const std::string_view text = step.name.text;
  if (text.size() > kLongestName)
    return;
  if (used_ == kEntries) { // start over: what repeats is found again within one round
    index_.fill(0);
    used_ = 1;
    last_ = 0;
    entries_[0].next = 0;
  }
  uint32_t chosen = slot(step, 0);
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    uint32_t each = slot(step, probe);
    const Entry &entry = entries_[index_[each]];
    // A free slot, or one whose id is of an earlier collection.
    if (index_[each] == 0 || entry.collection != step.collection) {
      chosen = each;
      break;
    }
  }
  if (index_[chosen] == 0)
    index_[chosen] = used_++;
  Entry &entry = entries_[index_[chosen]];
  entry.hash = step.name.hash;
  entry.parent = step.parent;
  entry.id = id;
  entry.generation = step.generation;
  entry.collection = step.collection;
  entry.kind = step.kind;
  entry.length = static_cast<uint8_t>(text.size());
  std::memcpy(entry.text.data(), text.data(), text.size());
  entry.next = 0;
  use(entry);
}

} // namespace proton
