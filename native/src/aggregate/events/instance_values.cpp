#include "aggregate/events/instance_values.h"

#include <algorithm>

#include "support/error.h"

namespace proton {
namespace {

void add_metric(std::vector<UserMetric> &metrics, const UserMetric &metric) {
  auto known = std::find_if(metrics.begin(), metrics.end(),
                            [&](const UserMetric &each) { return each.metric == metric.metric; });
  if (known == metrics.end()) {
    metrics.push_back(metric);
    return;
  }
  try {
    add_value(known->value, metric.metric->aggregation, metric.value, metric.metric->text);
  } catch (const Error &) { // which the tree has counted
    known->value = metric.value;
  }
}

EventValues texts(const std::vector<UserMetric> &metrics) {
  EventValues values;
  for (const UserMetric &metric : metrics)
    values.values.emplace_back(metric.metric->shown, metric_text(metric.value));
  return values;
}

} // namespace

void InstanceValues::add(const OpenInstance &instance, int64_t at_ns, const UserMetric &metric) {
  std::list<Given> &given = given_[key(instance.thread, instance.at)];
  if (given.empty() || given.back().scope_id != instance.scope_id)
    given.push_back({instance.scope_id, instance.epoch, at_ns, {}});
  add_metric(given.back().metrics, metric);
}

std::optional<EventValues> InstanceValues::take(uint32_t thread, ContextId at, int64_t from_ns,
                                                int64_t to_ns) {
  auto found = given_.find(key(thread, at));
  if (found == given_.end())
    return std::nullopt;
  std::list<Given> &given = found->second;
  auto after = to_ns == 0 ? std::next(given.begin())
                          : std::find_if(given.begin(), given.end(),
                                         [&](const Given &each) { return each.at_ns > to_ns; });
  if (after == given.begin())
    return std::nullopt;
  std::optional<EventValues> values;
  if (const Given &newest = *std::prev(after); newest.at_ns >= from_ns)
    values = texts(newest.metrics);
  given.erase(given.begin(), after);
  if (given.empty())
    given_.erase(found);
  return values;
}

} // namespace proton
