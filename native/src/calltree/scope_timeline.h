// When the scopes inside kernels ran, launch by launch, up to a bound of memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "calltree/metric_columns.h"
#include "record/timeline_record.h"
#include "support/name.h"

namespace proton {

/// Owned form of TimelineRecord.
struct TimelineLaunch {
  NodeIndex kernel = 0; ///< in the tree of the same session and phase
  int32_t device = 0;   ///< index into the DeviceTable
  uint64_t clock_hz = 0;
  TimerOffset timer;
  std::shared_ptr<const std::vector<Name>> scope_names; ///< by id
  std::vector<TimelineProgram> programs;
  std::vector<TimelineScope> instances;
  /// When the kernel ran by CLOCK_MONOTONIC, from another collector: nothing of the launch is shown
  /// outside. The end is 0 if this is not known.
  int64_t kernel_start_ns = 0;
  int64_t kernel_end_ns = 0;

  /// Moves the launch by the smallest distance that puts its programs between these times; they
  /// share the error of the timer's offset. A launch that is too long is centred. A distance that
  /// no such error explains belongs to another kernel, and nothing is moved.
  void put_into_kernel(int64_t start_ns, int64_t end_ns);
};

/// A copy shares its launches. Not synchronised: the aggregator's lock guards it.
class ScopeTimeline {
public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  explicit ScopeTimeline(size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}
  /// False if there is no room for the launch. Later launches are not added either, so that the
  /// start of a run is complete.
  bool add(NodeIndex kernel, int32_t device, const TimelineRecord &record);
  /// The launch, which is not kept here; empty if the record is not complete.
  std::optional<TimelineLaunch> own(NodeIndex kernel, int32_t device, const TimelineRecord &record);
  const std::vector<std::shared_ptr<const TimelineLaunch>> &launches() const { return launches_; }
  bool is_full() const { return is_full_; }

private:
  void name_scopes(const TimelineRecord &record);

  size_t max_bytes_;
  size_t bytes_ = 0;
  bool is_full_ = false;
  std::vector<std::shared_ptr<const TimelineLaunch>> launches_;
  std::shared_ptr<const std::vector<Name>> names_; ///< of the newest launch
};

} // namespace proton
