#include "collector/cupti/pc_sampling/pc_counts.h"

#include <algorithm>

#include "record/record.h"

namespace proton {
namespace {

constexpr FunctionKey kOthers{~uint64_t{0}, ~uint32_t{0}};
constexpr size_t kNodeBytes = 4 * sizeof(void *); // of a hash table, with its bucket

} // namespace

FunctionKey PcCounts::function_of(FunctionKey key, const char *name) {
  if (names_.contains(key))
    return key;
  if (names_.size() >= kMostFunctions) {
    key = kOthers;
    name = "<other functions>";
  }
  auto [found, is_new] = names_.try_emplace(key, name ? name : "<unnamed kernel>");
  if (is_new)
    bytes_ += sizeof(*found) + kNodeBytes + found->second.size();
  return key;
}

std::vector<PcCounts::Count> &PcCounts::counts_of(FunctionKey function, uint64_t offset) {
  PcKey key{function, function == kOthers ? kNoOffset : offset};
  auto found = counts_.find(key);
  if (found != counts_.end())
    return found->second;
  if (counts_.size() >= kMostPcs)
    key.offset = kNoOffset;
  auto [added, is_new] = counts_.try_emplace(key);
  if (is_new)
    bytes_ += sizeof(*added) + kNodeBytes;
  return added->second;
}

void PcCounts::add(std::vector<Count> &counts, const Count &count) {
  auto known = std::find_if(counts.begin(), counts.end(),
                            [&](const Count &each) { return each.reason == count.reason; });
  if (known != counts.end()) {
    known->samples += count.samples;
    return;
  }
  size_t before = counts.capacity();
  counts.push_back(count);
  bytes_ += (counts.capacity() - before) * sizeof(Count);
}

void PcCounts::add(const cupti::PcData &pc, const std::vector<int32_t> &reasons) {
  if (!pc.stall_reasons)
    return;
  std::vector<Count> *counts = nullptr;
  for (size_t i = 0; i < pc.stall_reason_count; ++i) {
    const cupti::PcStallReason &stall = pc.stall_reasons[i];
    int32_t reason = stall.index < reasons.size() ? reasons[stall.index] : -1;
    if (reason < 0 || stall.samples == 0)
      continue;
    if (!counts)
      counts =
          &counts_of(function_of({pc.cubin_crc, pc.function_index}, pc.function_name), pc.offset);
    add(*counts, {static_cast<uint16_t>(reason), stall.samples});
  }
}

void PcCounts::absorb(const PcCounts &other) {
  for (const auto &[pc, counts] : other.counts_) {
    FunctionKey function = function_of(pc.of, other.name(pc.of).c_str());
    std::vector<Count> &to = counts_of(function, pc.offset);
    for (const Count &count : counts)
      add(to, count);
  }
}

void PcCounts::clear() {
  counts_.clear();
  names_.clear();
  bytes_ = 0;
}

const std::string &PcCounts::name(const FunctionKey &key) const { return names_.at(key); }

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
