// Metric values of a tree: one typed column per metric, indexed by node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "support/name.h"

namespace proton {

// A value of a metric, and how another value is added to it.

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

// The value as one of a wider type.
double as_double(const MetricValue &value);
std::vector<int64_t> as_ints(const MetricValue &value);
std::vector<double> as_doubles(const MetricValue &value);
/// The text that upstream writes: six digits after the point, lists as `[1,2]`. A number that this
/// would change has as many digits as it needs.
std::string metric_text(const MetricValue &value);

// Names of the program's metrics.

/// The name of a metric and how its values are summed. Each pair exists once, for the whole
/// process.
class MetricName {
public:
  std::string text; ///< with unit, e.g. "time (ns)"
  Aggregation aggregation = Aggregation::kInclusive;
  uint32_t number = 0;
  /// Whether a list of numbers was ever given: only sums of lists can meet a value that does not
  /// fit.
  mutable std::atomic<bool> has_lists{false};
  Name shown; ///< as the program gave it, without what it need not say: "m", "m (exc)"

  static const MetricName &of(std::string_view text, Aggregation aggregation); ///< [any thread]
  static const MetricName &numbered(uint32_t number);                          ///< [any thread]
  static size_t count(); ///< for tests that what else has names frees them
};

// The samples of one metric on one node: moments, up to 64 raw values, then a log-bucket sketch.

/// Relative error of a sketch whose buckets never merged.
inline constexpr double kSketchAccuracy = 0.001;
inline constexpr double kSketchGamma = (1 + kSketchAccuracy) / (1 - kSketchAccuracy);
inline constexpr size_t kMaxRawSamples = 64;
inline constexpr size_t kMaxSketchBytes = 4000;

/// Counts of values by their logarithm. Bucket i covers (g^(i-1), g^i], where g is `gamma` squared
/// once for each of `collapses`. Buckets are sparse: a value far from the others costs one page.
/// Where they would take more than kMaxSketchBytes, all of them merge in pairs, so that the middle
/// of every bucket stays within (g-1)/(g+1) of its values.
/// After "UDDSketch: Accurate Tracking of Quantiles in Data Streams", Epicoco et al. 2020,
/// arXiv:2004.08604.
class Sketch {
public:
  struct Bucket {
    int32_t index = 0;
    uint64_t count = 0;
  };

  explicit Sketch(double bucket_ratio = kSketchGamma);
  /// Adds a value, given by its natural logarithm, `count` times. Returns the growth in bytes.
  size_t add(double ln, uint64_t count = 1);

  double gamma() const { return gamma_; }
  uint8_t collapses() const { return collapses_; }
  std::vector<Bucket> buckets() const; ///< that are not empty, by rising index
  size_t bytes() const;                ///< allocated for buckets

private:
  static constexpr int32_t kPageBits = 3;
  /// Neighbouring buckets. Sixteen bits each suffice for most; the rest is in `carries_`.
  struct Page {
    int32_t number = 0; ///< index of its first bucket / 8
    uint16_t counts[1 << kPageBits] = {};
  };
  /// How often the count of a bucket overflowed.
  struct Carry {
    int32_t index = 0;
    uint32_t times = 0;
  };

  Page &page(int32_t number);
  Page &find_page(int32_t number);
  void add_to(int32_t index, uint64_t count);
  void carry(int32_t index, uint64_t times);
  size_t settle();
  void merge_pairs();

  static constexpr size_t kMaxPages = kMaxSketchBytes / sizeof(Page) + 1;
  static_assert(kMaxPages <= 256, "places are bytes");

  double gamma_;
  double ln_gamma_;
  size_t counted_bytes_;
  std::vector<Page> pages_;    ///< by rising number
  std::vector<Carry> carries_; ///< by rising index
  uint8_t collapses_ = 0;
  uint8_t places_[256] = {}; ///< where in pages_ a page was last, by the low byte of its number
};

/// Samples that were counted elsewhere: exact moments, and values near the real ones.
struct CountedSamples {
  struct Bin {
    double value = 0;
    uint64_t count = 0;
  };
  uint64_t n = 0; ///< of all bins
  double sum = 0, min = 0, max = 0;
  std::span<const Bin> bins;
  double value_error = 0;      ///< how far a bin's value may be from a real one, relative to it
  double gamma = kSketchGamma; ///< of the sketch, also before there is one
};

class Distribution {
public:
  Distribution() = default;
  Distribution(const Distribution &other) { *this = other; }
  Distribution &operator=(const Distribution &other);
  Distribution(Distribution &&) noexcept = default;
  Distribution &operator=(Distribution &&) noexcept = default;
  ~Distribution() = default;

  /// Adds one sample. Values <= 0 count in `zero_count` and not in the logarithmic sums. Returns
  /// the growth in bytes, which is negative where the distribution shrank.
  std::ptrdiff_t add(double value, bool keep_samples);
  /// Same for counted samples. Their logarithmic sums are as exact as their bins.
  std::ptrdiff_t add(const CountedSamples &counted, bool keep_samples);

  uint64_t n = 0;
  uint64_t zero_count = 0;
  double sum = 0, min = 0, max = 0;
  double sum_ln = 0, sum_ln2 = 0;
  double value_error = 0;         ///< the largest of the counted samples
  std::vector<float> samples;     ///< all samples while there is no sketch
  std::unique_ptr<Sketch> sketch; ///< covers all samples; set from sample kMaxRawSamples + 1 on
  bool moments_only = false;      ///< the session's budget was spent: neither samples nor sketch

private:
  size_t bytes() const;
  void forget_samples();
  void make_sketch(double gamma); ///< of the samples
};

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
