// The slices that arrows from a launch call lead to.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "record/timeline_event.h"

namespace proton {

/// A launch leads to what it ran; a launch of a graph to the first node on each stream.
class LaunchFlows {
public:
  /// Arrows from one launch of a graph; further streams get none.
  static constexpr uint32_t kMaxArrows = 8;

  /// Number of the arrow that ends at the event, among the arrows of its launch; none ends at a
  /// launch itself. Events come by ascending start.
  std::optional<uint32_t> arrow(const TimelineEvent &event);

private:
  static constexpr size_t kMaxLaunches = 4096; ///< graphs whose nodes may still come

  std::unordered_map<uint64_t, std::vector<uint64_t>> streams_; ///< by launch
  std::deque<uint64_t> oldest_;
};

} // namespace proton
