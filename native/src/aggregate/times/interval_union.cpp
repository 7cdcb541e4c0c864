#include "aggregate/times/interval_union.h"

#include <iterator>

namespace proton {

/// Removes from what stands aside the parts before the end of what is closed.
void IntervalUnion::cut_late() {
  for (Block &one : aside_) {
    if (one.start_ns >= closed_until_ns_)
      continue;
    late_ns_ += std::min(one.end_ns, closed_until_ns_) - one.start_ns;
    one.start_ns = closed_until_ns_;
  }
  std::erase_if(aside_, [](const Block &one) { return one.end_ns < one.start_ns; });
}

void IntervalUnion::merge() {
  if (aside_.empty())
    return;
  if (has_closed_)
    cut_late();
  auto begins_before = [](const Block &one, const Block &other) {
    return one.start_ns < other.start_ns;
  };
  std::stable_sort(aside_.begin(), aside_.end(), begins_before);
  std::vector<Block> all;
  all.reserve(blocks_.size() + aside_.size());
  std::merge(blocks_.begin(), blocks_.end(), aside_.begin(), aside_.end(), std::back_inserter(all),
             begins_before);
  aside_.clear();
  blocks_.clear();
  for (const Block &one : all) {
    if (!blocks_.empty() && one.start_ns <= blocks_.back().end_ns)
      blocks_.back().end_ns = std::max(blocks_.back().end_ns, one.end_ns);
    else
      blocks_.push_back(one);
  }
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

int64_t IntervalUnion::covered_ns() {
  merge();
  int64_t covered_ns = closed_ns_;
  for (const Block &block : blocks_)
    covered_ns += block.end_ns - block.start_ns;
  return covered_ns;
}

} // namespace proton
