// Metric values of a tree: one typed column per metric, indexed by node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calltree/distribution.h"
#include "calltree/metric_name.h"
#include "calltree/metric_value.h"

namespace proton {

using NodeIndex = uint32_t;
/// Unit inside the trailing parentheses of "time (ns)"; empty when there are none.
std::string metric_unit(const std::string &name);

/// One metric over all nodes, each with a value of its own type.
struct MetricColumn {
  enum class Held : uint8_t { kNone, kInt, kDouble, kOther };

  std::string name; ///< with unit, e.g. "time (ns)"
  Aggregation aggregation = Aggregation::kInclusive;
  bool is_own = false;         ///< for `.proton` alone: what upstream's tools read lacks it
  std::vector<Held> held;      ///< where the value of a node is; shorter where the tail is empty
  std::vector<int64_t> ints;   ///< kInt
  std::vector<double> doubles; ///< kDouble
  std::unordered_map<NodeIndex, MetricValue> others;
  std::unordered_map<NodeIndex, Distribution> distributions;

  bool has(NodeIndex node) const { return holds(node) != Held::kNone; }
  Held holds(NodeIndex node) const { return node < held.size() ? held[node] : Held::kNone; }
  /// The value of a node that has one.
  MetricValue value(NodeIndex node) const;
  /// The narrowest type that holds every value; kInt if there are none.
  MetricType type() const;
  bool is_empty() const;
};

/// The columns of one tree. Not synchronised: the aggregator's lock guards it.
class MetricColumns {
public:
  /// Adds to the node's value by `add_value`, which may throw Error(kMetric). A name that comes
  /// with several aggregations has a column for each; the first, or the built-in one, keeps the
  /// name and the others say theirs: "m [exc]".
  void add(NodeIndex node, const MetricName &metric, const MetricValue &value);
  void add(NodeIndex node, std::string_view name, Aggregation aggregation,
           const MetricValue &value) {
    add(node, MetricName::of(name, aggregation), value);
  }
  /// Same for the built-in int64 metrics, by column position from `builtin`.
  void add_int(size_t column, NodeIndex node, int64_t value);
  /// Sets a built-in int64 metric that only `.proton` files show. `name` is one of a few constants.
  void set_own(const char *name, Aggregation aggregation, NodeIndex node, int64_t value);
  /// Adds to such a metric: sums, unless the aggregation is a property.
  void add_own(const char *name, Aggregation aggregation, NodeIndex node, int64_t value);
  /// Adds one sample to the node's distribution of a built-in metric.
  void add_sample(size_t column, NodeIndex node, double value);
  /// The node's distribution of a built-in metric, made if it is new. Its address does not change.
  Distribution &distribution(size_t column, NodeIndex node);
  void add_sample(Distribution &distribution, double value);
  void add_samples(Distribution &distribution, const CountedSamples &counted);
  /// Position of a built-in int64 column, made on first use. `name` is one of a few constants.
  size_t builtin(const char *name, Aggregation aggregation);

  const std::vector<MetricColumn> &columns() const { return columns_; }
  uint64_t cold_distributions() const { return cold_; } ///< reduced to moments by the budget

private:
  template <typename Samples> void add_to(Distribution &distribution, const Samples &samples);
  size_t position(const MetricName &metric);
  std::string free_name(std::string_view name, Aggregation aggregation) const;
  MetricColumn *find_shown(std::string_view name);
  std::vector<MetricColumn> columns_;
  std::unordered_map<uint32_t, size_t> positions_;        ///< by number of the name given
  std::vector<std::pair<const char *, size_t>> builtins_; ///< by the address of the constant
  size_t distribution_bytes_ = 0;
  uint64_t cold_ = 0;
};

} // namespace proton
