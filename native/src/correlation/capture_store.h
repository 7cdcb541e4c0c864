// Where nodes of graphs were captured, for as long as a graph or a launch of it needs that.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "calltree/metric_columns.h"
#include "correlation/device_values.h"
#include "record/graph.h"

namespace proton {

/// A user metric as it came from Python: a value, or the place where a device leaves one for each
/// launch of the graph that is captured.
struct UserMetric {
  UserMetric(const MetricName &metric_, MetricValue value_,
             std::shared_ptr<DeviceValues> on_device_ = nullptr)
      : metric(&metric_), value(std::move(value_)), on_device(std::move(on_device_)) {}

  const MetricName *metric;
  MetricValue value;
  std::shared_ptr<DeviceValues> on_device; ///< null: `value`
};

/// One place of capture, or the values that were added at one.
struct CapturedAt {
  Capture at;
  std::vector<uint32_t> sessions; ///< generations of those that were active
  std::vector<UserMetric> metrics;
  uint64_t references = 0;

  bool is_seen_by(uint32_t session) const;
};

/// Numbers are not used again while the process lives, so that a cache may be keyed by them. Not
/// synchronised: the aggregator's lock guards it.
class CaptureStore {
public:
  /// The place, made when it is new, with one reference more.
  CaptureId keep(const Capture &at, const std::vector<uint32_t> &sessions);
  /// Values, with one reference.
  CaptureId keep(const Capture &at, const std::vector<uint32_t> &sessions,
                 std::vector<UserMetric> metrics);
  void keep(CaptureId id);
  void give_back(CaptureId id);
  /// Null for 0.
  const CapturedAt *find(CaptureId id) const;
  /// Contexts that must not be freed.
  void append_ids(std::vector<ContextId> &ids) const;
  template <typename Visit> void for_each_on_device(Visit &&visit) const {
    for (const auto &[id, place] : places_)
      for (const UserMetric &metric : place.metrics)
        if (metric.on_device)
          visit(*metric.on_device);
  }
  size_t size() const { return places_.size(); }

private:
  struct Hash {
    size_t operator()(const Capture &at) const noexcept;
  };
  struct Same {
    bool operator()(const Capture &left, const Capture &right) const noexcept;
  };

  std::unordered_map<CaptureId, CapturedAt> places_;
  std::unordered_map<Capture, CaptureId, Hash, Same> known_; ///< places without metrics
  CaptureId next_ = 1;
};

} // namespace proton
