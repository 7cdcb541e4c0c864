#include "aggregate/times/interval_union.h"

#include <iterator>

namespace proton {

void IntervalUnion::insert(int64_t start_ns, int64_t end_ns, uint32_t owner) {
  if (has_closed_ && start_ns < closed_until_ns_) {
    late_ns_ += std::min(end_ns, closed_until_ns_) - start_ns;
    if (end_ns <= closed_until_ns_)
      return;
    start_ns = closed_until_ns_;
  }
  auto at =
      std::upper_bound(blocks_.begin(), blocks_.end(), start_ns,
                       [](int64_t start, const Block &block) { return start < block.start_ns; });
  if (at != blocks_.begin() && std::prev(at)->end_ns >= start_ns) {
    --at;
    at->end_ns = std::max(at->end_ns, end_ns);
  } else {
    at = blocks_.insert(at, {start_ns, end_ns, owner});
  }
  auto after = std::next(at), last = after;
  for (; last != blocks_.end() && last->start_ns <= at->end_ns; ++last)
    at->end_ns = std::max(at->end_ns, last->end_ns);
  blocks_.erase(after, last);
}

void IntervalUnion::forget_older(size_t count) {
  if (count == 0)
    return;
  if (!has_closed_)
    first_closed_ = blocks_.front();
  has_closed_ = true;
  for (size_t i = 0; i < count; ++i)
    closed_ns_ += blocks_[i].end_ns - blocks_[i].start_ns;
  closed_until_ns_ = blocks_[count - 1].end_ns;
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(count));
}

int64_t IntervalUnion::covered_ns() const {
  int64_t covered_ns = closed_ns_;
  for (const Block &block : blocks_)
    covered_ns += block.end_ns - block.start_ns;
  return covered_ns;
}

} // namespace proton
