// Joins device records with the launches they came from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/record.h"

namespace proton {

/// Correlation id -> where the launch stood. Not synchronised: the aggregator's lock guards it.
class LaunchTable {
public:
  /// Returns the older launch whose id was used again before its record came; empty without one.
  std::optional<Capture> add(const LaunchRecord &launch) {
    auto [found, is_new] = launches_.try_emplace(launch.correlation_id, launch.at);
    if (is_new)
      return std::nullopt;
    return std::exchange(found->second, launch.at);
  }
  /// Removes and returns the launch; empty when it is unknown.
  std::optional<Capture> take(uint64_t correlation_id) {
    auto found = launches_.find(correlation_id);
    if (found == launches_.end())
      return std::nullopt;
    Capture at = found->second;
    launches_.erase(found);
    return at;
  }
  /// Forgets launches of epochs that no phase needs any more; their records may still come.
  /// `live_epochs` ascend.
  void forget_except(const std::vector<EpochId> &live_epochs) {
    forgotten_ += std::erase_if(launches_, [&](const auto &item) {
      return !std::binary_search(live_epochs.begin(), live_epochs.end(), item.second.epoch);
    });
  }
  /// Notes a launch whose phase was cleared before it got here.
  void forget() { ++forgotten_; }
  /// True when an unknown record is accounted for by a forgotten launch. A count is enough: one
  /// id per forgotten launch would grow without bound when their records never come.
  bool take_forgotten() { return forgotten_ != 0 && forgotten_-- != 0; }
  size_t size() const { return launches_.size(); }

private:
  std::unordered_map<uint64_t, Capture> launches_;
  uint64_t forgotten_ = 0;
};

} // namespace proton
