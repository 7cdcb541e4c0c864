#include "context/thread/range_counts.h"

#include <algorithm>
#include <iterator>

#include "calltree/metric_name.h"

namespace proton {
namespace {

void add(Counts &sum, const Counts &counts) noexcept {
  for (size_t i = 0; i < counts.size(); ++i)
    sum[i] += counts[i];
}

bool is_open(ShadowStack &stack, uint32_t index, uint64_t scope_id) noexcept {
  return index < stack.depth() && stack.entry(index).scope_id() == scope_id &&
         !stack.entry(index).has_ended();
}

} // namespace

uint32_t number_of_counts(std::string_view name) {
  return MetricName::of(name, Aggregation::kInclusive).number;
}

void set_count_source(const CountSource *source) noexcept {
  g_count_source.store(source, std::memory_order_release);
}

/// Forgets ranges that nothing will end: their counts are those of the ranges around them.
void RangeCounts::settle(const CountSource &source, ShadowStack &stack) noexcept {
  if (source_ != &source)
    open_.clear(); // what they counted has other names
  source_ = &source;
  while (!open_.empty() && !is_open(stack, open_.back().index, open_.back().scope_id)) {
    Counts counts = open_.back().counts;
    open_.pop_back();
    if (!open_.empty())
      add(open_.back().counts, counts);
  }
}

void RangeCounts::take() noexcept {
  Counts counts{};
  if (source_->take(*source_, counts) && !open_.empty())
    add(open_.back().counts, counts);
}

void RangeCounts::enter(const CountSource &source, ShadowStack &stack) noexcept {
  settle(source, stack);
  take();
  try {
    open_.push_back({stack.depth() - 1, stack.top().scope_id(), {}});
  } catch (...) { // no memory: the counts stay with the range around it
  }
}

const Counts *RangeCounts::leave(const CountSource &source, ShadowStack &stack,
                                 uint64_t scope_id) noexcept {
  settle(source, stack);
  take();
  auto found = std::find_if(open_.rbegin(), open_.rend(),
                            [&](const Range &each) { return each.scope_id == scope_id; });
  if (found == open_.rend())
    return nullptr;
  left_ = found->counts;
  open_.erase(std::next(found).base());
  return &left_;
}

} // namespace proton
