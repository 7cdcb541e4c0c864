#include "context/thread/range_counts.h"

#include <algorithm>
#include <iterator>

#include "calltree/metric_name.h"

namespace proton {
namespace {

std::atomic<uint32_t> g_count_metric{0};

bool is_open(ShadowStack &stack, uint32_t index, uint64_t scope_id) noexcept {
  return index < stack.depth() && stack.entry(index).scope_id() == scope_id &&
         !stack.entry(index).has_ended();
}

} // namespace

void set_count_source(CountSource source, std::string_view metric) {
  if (source)
    g_count_metric = MetricName::of(metric, Aggregation::kInclusive).number;
  g_count_source.store(source, std::memory_order_release);
}

uint32_t count_metric() noexcept { return g_count_metric; }

/// Forgets ranges that nothing will end: their counts are those of the ranges around them.
void RangeCounts::close_ended(ShadowStack &stack) noexcept {
  while (!open_.empty() && !is_open(stack, open_.back().index, open_.back().scope_id)) {
    int64_t count = open_.back().count;
    open_.pop_back();
    if (!open_.empty())
      open_.back().count += count;
  }
}

void RangeCounts::take(CountSource source) noexcept {
  int64_t count = 0;
  if (source(count) && !open_.empty())
    open_.back().count += count;
}

void RangeCounts::enter(CountSource source, ShadowStack &stack) noexcept {
  close_ended(stack);
  take(source);
  try {
    open_.push_back({stack.depth() - 1, stack.top().scope_id(), 0});
  } catch (...) { // no memory: the counts stay with the range around it
  }
}

const int64_t *RangeCounts::leave(CountSource source, ShadowStack &stack,
                                  uint64_t scope_id) noexcept {
  close_ended(stack);
  take(source);
  auto range = std::find_if(open_.rbegin(), open_.rend(),
                            [&](const Range &open) { return open.scope_id == scope_id; });
  if (range == open_.rend())
    return nullptr;
  left_ = range->count;
  open_.erase(std::next(range).base());
  return &left_;
}

} // namespace proton
