#include "collector/gpu/devices/clock_pairs.h"

#include <algorithm>

#include "support/clock.h"

namespace proton {
namespace {

constexpr int64_t kBetweenPairsNs = 250'000'000;
constexpr size_t kMaxPairs = 256; // a minute; older records are long read
constexpr int kTries = 5;

} // namespace

void ClockPairs::start(Read read, const void *library) noexcept {
  read_ = read;
  library_ = library;
  pairs_.clear();
  newest_ns_ = 0;
  drift_ns_.store(0, std::memory_order_relaxed);
  first_ = read_both();
}

void ClockPairs::end() noexcept {
  std::optional<Pair> last = first_ ? read_both() : std::nullopt;
  read_.store(nullptr, std::memory_order_relaxed);
  if (last)
    drift_ns_.store(last->offset_ns - first_->offset_ns, std::memory_order_relaxed);
}

std::optional<ClockPairs::Pair> ClockPairs::read_both() const noexcept {
  const Read read = read_.load(std::memory_order_relaxed);
  if (!read)
    return std::nullopt;
  Pair best{};
  int64_t shortest_ns = INT64_MAX; // the pair that was read most nearly at once
  for (int i = 0; i < kTries; ++i) {
    uint64_t vendor_ns = 0;
    int64_t before_ns = monotonic_ns();
    if (!read(library_, vendor_ns))
      return std::nullopt;
    int64_t took_ns = monotonic_ns() - before_ns;
    if (took_ns >= shortest_ns)
      continue;
    shortest_ns = took_ns;
    auto time_ns = static_cast<int64_t>(vendor_ns);
    best = {time_ns, time_ns - (before_ns + took_ns / 2)};
  }
  return best;
}

void ClockPairs::observe() noexcept {
  int64_t now_ns = monotonic_ns();
  if (!pairs_.empty() && now_ns - newest_ns_ < kBetweenPairsNs)
    return;
  std::optional<Pair> best = read_both();
  if (!best)
    return;
  if (first_)
    drift_ns_.store(best->offset_ns - first_->offset_ns, std::memory_order_relaxed);
  try {
    pairs_.push_back(*best);
    newest_ns_ = now_ns;
    if (pairs_.size() > kMaxPairs)
      pairs_.pop_front();
  } catch (...) { // no memory: the older pairs serve on
  }
}

int64_t ClockPairs::offset_at(int64_t vendor_ns) const noexcept {
  if (pairs_.empty())
    return 0;
  auto after = std::lower_bound(pairs_.begin(), pairs_.end(), vendor_ns,
                                [](const Pair &pair, int64_t at) { return pair.vendor_ns < at; });
  if (after == pairs_.begin())
    return pairs_.front().offset_ns;
  if (after == pairs_.end())
    return pairs_.back().offset_ns;
  auto before = std::prev(after);
  int64_t span_ns = after->vendor_ns - before->vendor_ns;
  if (span_ns <= 0)
    return after->offset_ns;
  double share = static_cast<double>(vendor_ns - before->vendor_ns) / static_cast<double>(span_ns);
  auto drift = static_cast<double>(after->offset_ns - before->offset_ns);
  return before->offset_ns + static_cast<int64_t>(share * drift);
}

} // namespace proton
