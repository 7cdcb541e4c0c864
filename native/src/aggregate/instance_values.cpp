#include "aggregate/instance_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <type_traits>

namespace proton {
namespace {

template <typename T> void add_to(T &sum, const T &value) {
  if constexpr (std::is_arithmetic_v<T>) {
    if constexpr (std::is_integral_v<T>) // as in a tree, a sum that is too big wraps
      sum = static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(value));
    else
      sum += value;
  } else if (sum.size() == value.size()) {
    for (size_t i = 0; i < sum.size(); ++i)
      add_to(sum[i], value[i]);
  }
}

void add_metric(std::vector<UserMetric> &metrics, const UserMetric &metric) {
  auto known = std::find_if(metrics.begin(), metrics.end(), [&](const UserMetric &each) {
    return each.name == metric.name && each.aggregation == metric.aggregation;
  });
  if (known == metrics.end()) {
    metrics.push_back(metric);
    return;
  }
  if (metric.aggregation == Aggregation::kProperty ||
      known->value.index() != metric.value.index()) {
    known->value = metric.value;
    return;
  }
  std::visit([&](auto &sum) { add_to(sum, std::get<std::decay_t<decltype(sum)>>(metric.value)); },
             known->value);
}

/// The name as the program gave it, but that it leaves out what it need not say.
std::string shown_name(const UserMetric &metric) {
  if (metric.aggregation == Aggregation::kInclusive)
    return metric.name;
  return metric.name + " (" + aggregation_text(metric.aggregation) + ")";
}

/// The text if it stands for this very number, else as many digits as that takes.
std::string exact_text(double value, std::string text) {
  if (std::strtod(text.c_str(), nullptr) == value || !std::isfinite(value))
    return text;
  std::array<char, 32> digits{};
  auto [end, error] = std::to_chars(digits.begin(), digits.end(), value);
  return {digits.data(), end};
}

std::string element_text(int64_t value) { return std::to_string(value); }

std::string element_text(double value) {
  std::ostringstream text;
  text << value;
  return exact_text(value, text.str());
}

EventValues texts(const std::vector<UserMetric> &metrics) {
  EventValues values;
  for (const UserMetric &metric : metrics)
    values.values.emplace_back(Name(shown_name(metric)), metric_text(metric.value));
  return values;
}

} // namespace

std::string metric_text(const MetricValue &value) {
  return std::visit(
      [](const auto &each) -> std::string {
        using Value = std::decay_t<decltype(each)>;
        if constexpr (std::is_floating_point_v<Value>) {
          return exact_text(each, std::to_string(each));
        } else if constexpr (std::is_integral_v<Value>) {
          return std::to_string(each);
        } else {
          std::string text = "[";
          for (size_t i = 0; i < each.size(); ++i)
            text += (i == 0 ? "" : ",") + element_text(each[i]);
          return text + "]";
        }
      },
      value);
}

void InstanceValues::add(const OpenInstance &instance, int64_t at_ns,
                         const std::vector<UserMetric> &metrics) {
  std::deque<Given> &given = given_[key(instance.thread, instance.at)];
  if (given.empty() || given.back().scope_id != instance.scope_id)
    given.push_back({instance.scope_id, instance.epoch, at_ns, {}});
  for (const UserMetric &metric : metrics)
    add_metric(given.back().metrics, metric);
}

std::optional<EventValues> InstanceValues::take(uint32_t thread, ContextId at, int64_t from_ns,
                                                int64_t to_ns) {
  auto found = given_.find(key(thread, at));
  if (found == given_.end())
    return std::nullopt;
  std::deque<Given> &given = found->second;
  auto after = to_ns == 0 ? given.begin() + 1
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
