// The numbers in a kernel's launch metadata.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "session/session_registry.h"

namespace proton {

/// Splits what a launch_metadata function returned into plain numbers and the rest. Keys are
/// remembered by address: they are constants of the target's code. [GIL held]
class LaunchMetrics {
public:
  LaunchMetrics() = default;
  ~LaunchMetrics();
  LaunchMetrics(const LaunchMetrics &) = delete;
  LaunchMetrics &operator=(const LaunchMetrics &) = delete;

  /// Appends the numbers of `values` (a dict) to `metrics` and returns a new dict of what Python
  /// has to look at; none without any. False with Python's exception set.
  bool split(PyObject *values, std::vector<UserMetric> &metrics, pybind11::object &rest);

private:
  enum class Coercion : uint8_t { kNone, kFloat, kInt };
  struct Key {
    PyObject *text = nullptr; ///< owned, so that no other takes its address
    bool is_reserved = false; ///< put there by Triton, no metric
    bool is_usable = false;   ///< a name that a metric can have
    Coercion coercion = Coercion::kNone;
    std::string name;
    Aggregation aggregation = Aggregation::kInclusive;
  };
  const Key &find(PyObject *key);
  static std::optional<MetricValue> plain_value(const Key &key, PyObject *value);

  std::array<Key, 64> keys_;
};

/// "inc", "exc" or "pty"; throws Error(kMetric) for another text.
Aggregation parse_aggregation(const std::string &text);
/// Adds to the context of the calling thread. Waits for the sessions' lock without the GIL.
void add_metrics_at(const Capture &at, const std::vector<UserMetric> &metrics);

} // namespace proton
