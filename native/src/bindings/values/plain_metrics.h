// Metrics that do not need Python: those of scopes, and the metadata of launches.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "session/session_registry.h"

namespace proton {

/// Splits metrics as the program gives them into plain values and the rest. Keys are remembered by
/// address, because they are constants of the target's code. [GIL held]
class PlainMetrics {
public:
  enum class Source : uint8_t { kScope, kLaunch };

  explicit PlainMetrics(Source source) : source_(source) {}
  ~PlainMetrics();
  PlainMetrics(const PlainMetrics &) = delete;
  PlainMetrics &operator=(const PlainMetrics &) = delete;

  /// Appends the numbers, and a scope's texts, of `values` (a dict) to `metrics`. What Python has
  /// to handle goes into a new dict, if there is any. Texts of a launch, and the entries of Triton
  /// itself, are left out. Returns false with Python's exception set.
  bool split(PyObject *values, std::vector<UserMetric> &metrics, pybind11::object &rest);

private:
  enum class Coercion : uint8_t { kNone, kFloat, kInt };
  struct Key {
    PyObject *text = nullptr; ///< owned, so that no other takes its address
    bool is_reserved = false; ///< put there by Triton, not a metric
    Coercion coercion = Coercion::kNone;
    const MetricName *name = nullptr; ///< null for a name that a metric cannot have
  };
  const Key &find(PyObject *key);
  std::optional<MetricValue> plain_value(const Key &key, PyObject *value) const;

  Source source_;
  std::array<Key, 64> keys_;
};

/// "inc", "exc" or "pty"; throws Error(kMetric) for another text.
Aggregation parse_aggregation(const std::string &text);
/// Adds to the context of the calling thread. Waits for the sessions' lock without the GIL.
void add_metrics_at(const Capture &at, const std::vector<UserMetric> &metrics);

} // namespace proton
