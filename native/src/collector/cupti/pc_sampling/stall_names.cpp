#include "collector/cupti/pc_sampling/stall_names.h"

#include <algorithm>

#include "record/pc_sample_record.h"

namespace proton {
namespace {

constexpr std::string_view kStalled = "stalled_";
constexpr std::string_view kNotIssued = "_not_issued";

/// The constant with that text, or a copy that is never freed.
const char *lasting(const std::string &text) {
  for (const char *known : kStallMetrics)
    if (text == known)
      return known;
  static auto *texts = new std::deque<std::string>;
  for (const std::string &each : *texts)
    if (each == text)
      return each.c_str();
  return texts->emplace_back(text).c_str();
}

} // namespace

std::optional<uint16_t> StallNames::find_or_add(std::string_view name) {
  size_t at = name.find(kStalled);
  if (at == std::string_view::npos)
    return std::nullopt;
  std::string_view reason = name.substr(at + kStalled.size());
  bool is_not_issued = reason.ends_with(kNotIssued);
  if (is_not_issued)
    reason.remove_suffix(kNotIssued.size());
  auto found = std::find(names_.begin(), names_.end(), reason);
  if (found == names_.end() && names_.size() == kMostReasons)
    return std::nullopt;
  size_t number = static_cast<size_t>(found - names_.begin());
  if (found == names_.end()) {
    std::string own(reason);
    reasons_.push_back({lasting("stalled_" + own), lasting("not_issued_" + own)});
    names_.push_back(std::move(own));
  }
  return static_cast<uint16_t>(2 * number + (is_not_issued ? 1 : 0));
}

} // namespace proton
