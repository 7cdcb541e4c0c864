#include "collector/gpu/launches/marker_ranges.h"

namespace proton {

void MarkerRanges::close_innermost() noexcept {
  while (!entries_.empty() && entries_.back().is_over && exit_scope_range(entries_.back().range))
    entries_.pop_back();
}

void MarkerRanges::push(const void *domain, std::string_view name) {
  close_innermost();
  if (entries_.size() == kMax || beyond_ != 0) {
    ++beyond_;
    return;
  }
  entries_.push_back({domain, {}, false});
  entries_.back().range = enter_scope_range(name);
}

void MarkerRanges::pop(const void *domain) noexcept {
  if (beyond_ != 0) {
    --beyond_;
    return;
  }
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->domain != domain || entry->is_over)
      continue;
    entry->is_over = true;
    break;
  }
  close_innermost(); // one that lies below a range of another domain waits for that
}

} // namespace proton
