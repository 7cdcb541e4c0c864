#include "calltree/metric_columns.h"

#include <algorithm>

#include "support/error.h"

namespace proton {
namespace {

constexpr size_t kDistributionBudgetBytes = 64u << 20;

const char *type_text(MetricType type) {
  switch (type) {
  case MetricType::kInt:
    return "int64_t";
  case MetricType::kDouble:
    return "double";
  case MetricType::kIntVector:
    return "vector<int64_t>";
  case MetricType::kDoubleVector:
    return "vector<double>";
  }
  return "unknown";
}

template <typename T> void grow(std::vector<T> &values, NodeIndex node) {
  if (values.size() <= node)
    values.resize(node + 1);
}

template <typename T>
void add_scalar(std::vector<T> &values, MetricColumn &column, NodeIndex node, T value) {
  grow(values, node);
  grow(column.valid, node);
  bool overwrite = column.aggregation == Aggregation::kProperty || !column.valid[node];
  if constexpr (std::is_same_v<T, int64_t>) {
    // Unsigned addition wraps instead of being undefined; a sum past 2^63 is the user's to notice.
    auto sum = static_cast<uint64_t>(values[node]) + static_cast<uint64_t>(value);
    values[node] = overwrite ? value : static_cast<int64_t>(sum);
  } else {
    values[node] = overwrite ? value : values[node] + value;
  }
  column.valid[node] = true;
}

template <typename T>
void add_vector(std::unordered_map<NodeIndex, std::vector<T>> &values, const MetricColumn &column,
                NodeIndex node, const std::vector<T> &value) {
  auto [found, is_new] = values.try_emplace(node, value);
  if (is_new)
    return;
  if (found->second.size() != value.size())
    throw Error(ErrorCode::kMetric, "Vector metric size mismatch for valueId 0 (" + column.name +
                                        "): current=" + std::to_string(found->second.size()) +
                                        ", new=" + std::to_string(value.size()) +
                                        "; give the metric one length on each call path");
  if (column.aggregation == Aggregation::kProperty) {
    found->second = value;
    return;
  }
  for (size_t i = 0; i < value.size(); ++i)
    found->second[i] += value[i];
}

} // namespace

const char *aggregation_text(Aggregation aggregation) {
  switch (aggregation) {
  case Aggregation::kInclusive:
    return "inc";
  case Aggregation::kExclusive:
    return "exc";
  case Aggregation::kProperty:
    return "pty";
  }
  return "inc";
}

std::string metric_unit(const std::string &name) {
  size_t open = name.rfind(" (");
  if (open == std::string::npos || name.back() != ')')
    return "";
  return name.substr(open + 2, name.size() - open - 3);
}

bool MetricColumn::has(NodeIndex node) const {
  switch (type) {
  case MetricType::kIntVector:
    return int_vectors.contains(node);
  case MetricType::kDoubleVector:
    return double_vectors.contains(node);
  default:
    return node < valid.size() && valid[node];
  }
}

MetricColumn &MetricColumns::column(const std::string &name, Aggregation aggregation,
                                    MetricType type) {
  auto found = positions_.find(name);
  if (found == positions_.end()) {
    MetricColumn fresh;
    fresh.name = name;
    fresh.aggregation = aggregation;
    fresh.type = type;
    columns_.reserve(columns_.size() + 1); // what may fail comes before the position is known
    found = positions_.emplace(name, columns_.size()).first;
    columns_.push_back(std::move(fresh));
  }
  MetricColumn &column = columns_[found->second];
  if (column.type != type)
    throw Error(ErrorCode::kMetric, "Metric value type mismatch for valueId 0 (" + name +
                                        "): current=" + type_text(column.type) + ", new=" +
                                        type_text(type) + "; record the metric with one type");
  if (column.aggregation != aggregation)
    throw Error(ErrorCode::kMetric, "Metric aggregation mismatch for '" + name + "': it was (" +
                                        aggregation_text(column.aggregation) + "), now (" +
                                        aggregation_text(aggregation) +
                                        "); give it one suffix everywhere");
  return column;
}

void MetricColumns::add(NodeIndex node, const std::string &name, Aggregation aggregation,
                        const MetricValue &value) {
  switch (value.index()) {
  case 0: {
    auto &target = column(name, aggregation, MetricType::kInt);
    add_scalar(target.ints, target, node, std::get<0>(value));
    return;
  }
  case 1: {
    auto &target = column(name, aggregation, MetricType::kDouble);
    add_scalar(target.doubles, target, node, std::get<1>(value));
    return;
  }
  case 2: {
    auto &target = column(name, aggregation, MetricType::kIntVector);
    add_vector(target.int_vectors, target, node, std::get<2>(value));
    return;
  }
  default: {
    auto &target = column(name, aggregation, MetricType::kDoubleVector);
    add_vector(target.double_vectors, target, node, std::get<3>(value));
    return;
  }
  }
}

size_t MetricColumns::builtin(const char *name, Aggregation aggregation) {
  for (const auto &[known, position] : builtins_)
    if (known == name)
      return position;
  auto found = positions_.find(std::string_view(name));
  if (found == positions_.end() || columns_[found->second].type != MetricType::kInt) {
    column(name, aggregation, MetricType::kInt);
    found = positions_.find(std::string_view(name));
  }
  builtins_.emplace_back(name, found->second);
  return found->second;
}

void MetricColumns::add_int(size_t position, NodeIndex node, int64_t value) {
  MetricColumn &target = columns_[position];
  add_scalar(target.ints, target, node, value);
}

void MetricColumns::set_own(const char *name, Aggregation aggregation, NodeIndex node,
                            int64_t value) {
  MetricColumn &target = columns_[builtin(name, aggregation)];
  if (node < target.ints.size())
    target.ints[node] = 0;
  add_own(name, aggregation, node, value);
}

void MetricColumns::add_own(const char *name, Aggregation aggregation, NodeIndex node,
                            int64_t value) {
  MetricColumn &target = columns_[builtin(name, aggregation)];
  target.is_own = true;
  add_scalar(target.ints, target, node, value);
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
