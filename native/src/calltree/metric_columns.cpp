#include "calltree/metric_columns.h"

#include <algorithm>

namespace proton {
namespace {

constexpr size_t kDistributionBudgetBytes = 64u << 20;

template <typename T> void grow(std::vector<T> &values, NodeIndex node) {
  if (values.size() <= node)
    values.resize(node + 1);
}

/// "m [exc]", "m [exc] (ns)": the unit stays last.
std::string qualified(std::string_view name, Aggregation aggregation) {
  std::string unit = metric_unit(std::string(name));
  std::string mark = std::string(" [") + aggregation_text(aggregation) + "]";
  if (unit.empty())
    return std::string(name) + mark;
  size_t open = name.rfind(" (");
  return std::string(name.substr(0, open)) + mark + std::string(name.substr(open));
}

void set_value(MetricColumn &column, NodeIndex node, const MetricValue &value) {
  using Held = MetricColumn::Held;
  const auto *integer = std::get_if<int64_t>(&value);
  const auto *number = std::get_if<double>(&value);
  if (integer)
    grow(column.ints, node);
  else if (number)
    grow(column.doubles, node);
  else
    column.others.insert_or_assign(node, value);
  grow(column.held, node); // what may fail is done
  if (integer)
    column.ints[node] = *integer;
  else if (number)
    column.doubles[node] = *number;
  Held now = integer ? Held::kInt : number ? Held::kDouble : Held::kOther;
  if (column.held[node] == Held::kOther && now != Held::kOther)
    column.others.erase(node);
  column.held[node] = now;
}

void add_int_to(MetricColumn &column, NodeIndex node, int64_t value) {
  if (column.holds(node) == MetricColumn::Held::kInt &&
      column.aggregation != Aggregation::kProperty) [[likely]] {
    if (add_exactly(column.ints[node], value))
      return;
  }
  if (!column.has(node)) {
    set_value(column, node, value);
    return;
  }
  MetricValue sum = column.value(node);
  add_value(sum, column.aggregation, value, column.name);
  set_value(column, node, sum);
}

} // namespace

std::string metric_unit(const std::string &name) {
  size_t open = name.rfind(" (");
  if (open == std::string::npos || name.back() != ')')
    return "";
  return name.substr(open + 2, name.size() - open - 3);
}

MetricValue MetricColumn::value(NodeIndex node) const {
  switch (holds(node)) {
  case Held::kInt:
    return ints[node];
  case Held::kDouble:
    return doubles[node];
  default:
    return others.at(node);
  }
}

MetricType MetricColumn::type() const {
  MetricType type = MetricType::kInt;
  if (std::find(held.begin(), held.end(), Held::kDouble) != held.end())
    type = MetricType::kDouble;
  for (const auto &[node, value] : others)
    type = widened(type, type_of(value));
  return type;
}

bool MetricColumn::is_empty() const {
  return std::all_of(held.begin(), held.end(), [](Held each) { return each == Held::kNone; });
}

MetricColumn *MetricColumns::find_shown(std::string_view name) {
  auto found = std::find_if(columns_.begin(), columns_.end(),
                            [&](const MetricColumn &each) { return each.name == name; });
  return found == columns_.end() ? nullptr : &*found;
}

std::string MetricColumns::free_name(std::string_view name, Aggregation aggregation) const {
  std::string free(name);
  auto is_taken = [&] {
    return std::any_of(columns_.begin(), columns_.end(),
                       [&](const MetricColumn &each) { return each.name == free; });
  };
  while (is_taken())
    free = qualified(free, aggregation);
  return free;
}

size_t MetricColumns::position(const MetricName &metric) {
  auto found = positions_.find(metric.number);
  if (found != positions_.end())
    return found->second;
  MetricColumn fresh;
  fresh.name = free_name(metric.text, metric.aggregation);
  fresh.aggregation = metric.aggregation;
  columns_.reserve(columns_.size() + 1); // what may fail comes before the position is known
  found = positions_.emplace(metric.number, columns_.size()).first;
  columns_.push_back(std::move(fresh));
  return found->second;
}

void MetricColumns::add(NodeIndex node, const MetricName &metric, const MetricValue &value) {
  MetricColumn &target = columns_[position(metric)];
  if (const auto *integer = std::get_if<int64_t>(&value)) {
    add_int_to(target, node, *integer);
    return;
  }
  if (!target.has(node)) {
    set_value(target, node, value);
    return;
  }
  MetricValue sum = target.value(node);
  add_value(sum, metric.aggregation, value, metric.text);
  set_value(target, node, sum);
}

size_t MetricColumns::builtin(const char *name, Aggregation aggregation) {
  for (const auto &[known, position] : builtins_)
    if (known == name)
      return position;
  // If a metric of the program has taken the name, it gives it back.
  MetricColumn *shown = find_shown(name);
  if (shown && shown->aggregation != aggregation)
    shown->name = free_name(qualified(name, shown->aggregation), shown->aggregation);
  size_t found = position(MetricName::of(name, aggregation));
  columns_[found].name = name;
  builtins_.emplace_back(name, found);
  return found;
}

void MetricColumns::add_int(size_t position, NodeIndex node, int64_t value) {
  add_int_to(columns_[position], node, value);
}

void MetricColumns::set_own(const char *name, Aggregation aggregation, NodeIndex node,
                            int64_t value) {
  MetricColumn &target = columns_[builtin(name, aggregation)];
  target.is_own = true;
  set_value(target, node, value);
}

void MetricColumns::add_own(const char *name, Aggregation aggregation, NodeIndex node,
                            int64_t value) {
  MetricColumn &target = columns_[builtin(name, aggregation)];
  target.is_own = true;
  add_int_to(target, node, value);
}

void MetricColumns::add_sample(size_t position, NodeIndex node, double value) {
  add_sample(distribution(position, node), value);
}

Distribution &MetricColumns::distribution(size_t position, NodeIndex node) {
  auto [found, is_new] = columns_[position].distributions.try_emplace(node);
  if (is_new)
    distribution_bytes_ += sizeof(Distribution);
  return found->second;
}

template <typename Samples>
void MetricColumns::add_to(Distribution &distribution, const Samples &samples) {
  bool was_cold = distribution.moments_only;
  // Unsigned: where a distribution shrinks, the sum wraps to what is right.
  distribution_bytes_ += static_cast<size_t>(
      distribution.add(samples, distribution_bytes_ < kDistributionBudgetBytes));
  if (!was_cold && distribution.moments_only)
    ++cold_;
}

void MetricColumns::add_sample(Distribution &distribution, double value) {
  add_to(distribution, value);
}

void MetricColumns::add_samples(Distribution &distribution, const CountedSamples &counted) {
  add_to(distribution, counted);
}

} // namespace proton
