// Names of the program's metrics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "calltree/metric_value.h"
#include "support/name.h"

namespace proton {

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

} // namespace proton
