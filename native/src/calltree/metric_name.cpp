#include "calltree/metric_name.h"

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "support/fork_locks.h"

namespace proton {
namespace {

struct MetricNames {
  std::mutex mutex;
  std::deque<MetricName> all; ///< their addresses stay
  std::map<std::pair<std::string_view, Aggregation>, uint32_t> numbers;
};

MetricNames &names() {
  static MetricNames *table = [] { // outlives threads of the target
    auto *fresh = new MetricNames;
    guard_across_fork(fresh->mutex, LockRank::kMetricNames);
    return fresh;
  }();
  return *table;
}

std::string shown_name(std::string_view text, Aggregation aggregation) {
  std::string name(text);
  if (aggregation != Aggregation::kInclusive)
    name += std::string(" (") + aggregation_text(aggregation) + ")";
  return name;
}

} // namespace

const MetricName &MetricName::of(std::string_view text, Aggregation aggregation) {
  MetricNames &table = names();
  std::lock_guard lock(table.mutex);
  auto known = table.numbers.find({text, aggregation});
  if (known != table.numbers.end())
    return table.all[known->second];
  MetricName &fresh = table.all.emplace_back();
  try {
    fresh.text = text;
    fresh.aggregation = aggregation;
    fresh.number = static_cast<uint32_t>(table.all.size() - 1);
    fresh.shown = Name(shown_name(text, aggregation));
    table.numbers.emplace(std::pair(std::string_view(fresh.text), aggregation), fresh.number);
  } catch (...) {
    table.all.pop_back();
    throw;
  }
  return fresh;
}

const MetricName &MetricName::numbered(uint32_t number) {
  MetricNames &table = names();
  std::lock_guard lock(table.mutex);
  return table.all[number];
}

size_t MetricName::count() {
  MetricNames &table = names();
  std::lock_guard lock(table.mutex);
  return table.all.size();
}

} // namespace proton
