// Metric values of a tree: one typed column per metric, indexed by node.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "calltree/distribution.h"

namespace proton {

using NodeIndex = uint32_t;
enum class Aggregation : uint8_t { kInclusive, kExclusive, kProperty };
enum class MetricType : uint8_t { kInt, kDouble, kIntVector, kDoubleVector };
using MetricValue = std::variant<int64_t, double, std::vector<int64_t>, std::vector<double>>;

/// "inc", "exc" or "pty".
const char *aggregation_text(Aggregation aggregation);
/// Unit inside the trailing parentheses of "time (ns)"; empty when there are none.
std::string metric_unit(const std::string &name);

/// One metric over all nodes. Scalars are dense, vectors sparse.
struct MetricColumn {
  std::string name; ///< with unit, e.g. "time (ns)"
  Aggregation aggregation = Aggregation::kInclusive;
  MetricType type = MetricType::kInt;
  bool is_own = false;         ///< for `.proton` alone: what upstream's tools read lacks it
  std::vector<int64_t> ints;   ///< kInt; shorter than the tree when the tail is empty
  std::vector<double> doubles; ///< kDouble
  std::vector<bool> valid;     ///< scalars: node has a value
  std::unordered_map<NodeIndex, std::vector<int64_t>> int_vectors;
  std::unordered_map<NodeIndex, std::vector<double>> double_vectors;
  std::unordered_map<NodeIndex, Distribution> distributions;

  bool has(NodeIndex node) const;
};

/// The columns of one tree. Not synchronised: the aggregator's lock guards it.
class MetricColumns {
public:
  /// Adds to the node's value: sums inc and exc (vectors by element), overwrites properties.
  /// Throws Error(kMetric) when type, aggregation or vector size differ from before.
  void add(NodeIndex node, const std::string &name, Aggregation aggregation,
           const MetricValue &value);
  /// Same for the built-in int64 metrics, by column position from `builtin`.
  void add_int(size_t column, NodeIndex node, int64_t value);
  /// Sets a built-in int64 metric that only `.proton` files show. `name` is one of few constants.
  void set_own(const char *name, Aggregation aggregation, NodeIndex node, int64_t value);
  /// Adds to one: summed where the aggregation is no property.
  void add_own(const char *name, Aggregation aggregation, NodeIndex node, int64_t value);
  /// Adds one sample to the node's distribution of a built-in metric.
  void add_sample(size_t column, NodeIndex node, double value);
  /// The node's distribution of a built-in metric, made when it is new; its address stays.
  Distribution &distribution(size_t column, NodeIndex node);
  void add_sample(Distribution &distribution, double value);
  void add_samples(Distribution &distribution, const CountedSamples &counted);
  /// Position of a built-in int64 column, made on first use. `name` is one of few constants.
  size_t builtin(const char *name, Aggregation aggregation);

  const std::vector<MetricColumn> &columns() const { return columns_; }
  uint64_t cold_distributions() const { return cold_; } ///< reduced to moments by the budget

private:
  template <typename Samples> void add_to(Distribution &distribution, const Samples &samples);
  MetricColumn &column(const std::string &name, Aggregation aggregation, MetricType type);
  std::vector<MetricColumn> columns_;
  std::map<std::string, size_t, std::less<>> positions_;
  std::vector<std::pair<const char *, size_t>> builtins_; ///< by the address of the constant
  size_t distribution_bytes_ = 0;
  uint64_t cold_ = 0;
};

} // namespace proton
