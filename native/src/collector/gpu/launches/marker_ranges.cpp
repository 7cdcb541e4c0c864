#include "collector/gpu/launches/marker_ranges.h"

#include <algorithm>

namespace proton {
namespace {

/// Where a key stands behind which there is a whole number.
size_t numbered(std::string_view text, std::string_view key) noexcept {
  size_t place = text.find(key);
  if (place == text.npos || place == 0)
    return text.npos;
  std::string_view rest = text.substr(place + key.size());
  rest.remove_prefix(rest.starts_with('-') ? 1 : 0);
  size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  bool is_whole = digits != 0 && (digits == rest.size() || rest.substr(digits).starts_with(", "));
  return is_whole ? place : text.npos;
}

} // namespace

std::string_view name_of_range(std::string_view text) noexcept {
  size_t id = numbered(text, ", op_id = "); // of torch 1.10 and later
  std::string_view name = text.substr(0, id);
  size_t sequence = numbered(name, ", seq = ");
  if (sequence == name.npos)
    return name;
  std::string_view before = name.substr(0, sequence);
  bool is_operator = before.find("::") != name.npos || before.find("Backward") != name.npos;
  return id != text.npos || is_operator ? before : name;
}

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
  entries_.back().range = enter_scope_range(name_of_range(name));
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
