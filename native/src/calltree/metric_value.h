// A value of a metric, and how another value is added to it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace proton {

enum class Aggregation : uint8_t { kInclusive, kExclusive, kProperty };

using MetricValue =
    std::variant<int64_t, double, std::vector<int64_t>, std::vector<double>, std::string>;

/// Types of values, by position in `MetricValue`. Each holds those before it: a number is a vector
/// of one element, and anything can be written as text.
enum class MetricType : uint8_t { kInt, kDouble, kIntVector, kDoubleVector, kText };

/// A value that is too large for a record of a thread.
struct LargeValue {
  MetricValue value;
};

inline MetricType type_of(const MetricValue &value) {
  return static_cast<MetricType>(value.index());
}
/// The narrowest type that holds values of both.
MetricType widened(MetricType left, MetricType right);

/// "inc", "exc" or "pty".
const char *aggregation_text(Aggregation aggregation);

/// Adds; returns false and changes nothing if the sum takes more than 64 bits. [hot]
inline bool add_exactly(int64_t &sum, int64_t value) {
  int64_t added = 0;
  if (__builtin_add_overflow(sum, value, &added))
    return false;
  sum = added;
  return true;
}

/// Adds to a value of the metric called `name`. Sums have the wider type, and are doubles where
/// integers need more than 64 bits; a property and a text are replaced. Throws Error(kMetric), and
/// changes nothing, if a vector meets a number or a vector of another length.
void add_value(MetricValue &sum, Aggregation aggregation, const MetricValue &value,
               const std::string &name);

/// Same for nodes that are shown as one, but refuses nothing: the shorter of two vectors, or a
/// number beside one, counts as padded with zeros.
void merge_value(MetricValue &total, Aggregation aggregation, MetricValue value);

// The value as one of a wider type.
double as_double(const MetricValue &value);
std::vector<int64_t> as_ints(const MetricValue &value);
std::vector<double> as_doubles(const MetricValue &value);
/// The text that upstream writes: six digits after the point, lists as `[1,2]`. A number that this
/// would change has as many digits as it needs.
std::string metric_text(const MetricValue &value);

} // namespace proton
