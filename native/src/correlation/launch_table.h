// Joins device records with the launches they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "record/record.h"

namespace proton {

/// Correlation id -> where the launch stood. Not synchronised: the aggregator's lock guards it.
///
/// Open addressing with linear probing: a launch lives for microseconds and there are hundred
/// thousands a second, so nothing is allocated per launch. Consecutive ids lie side by side in
/// groups, because records come in about the order of their launches. Where a place is taken, the
/// same place of the next group is tried: what lies side by side does not make a search longer.
class LaunchTable {
public:
  /// Returns the older launch whose id was used again before its record came; empty without one.
  std::optional<LaunchRecord> add(const LaunchRecord &launch);
  /// Removes and returns the launch; empty when it is unknown.
  std::optional<LaunchRecord> take(uint64_t correlation_id);
  /// Removes every launch that `is_over` says yes to. The order is not that of launching.
  template <typename Predicate> size_t remove_if(Predicate &&is_over) {
    std::vector<uint64_t> over;
    for (const LaunchRecord &launch : slots_)
      if (launch.correlation_id != 0 && is_over(launch))
        over.push_back(launch.correlation_id);
    for (uint64_t id : over)
      take(id);
    return over.size();
  }
  template <typename Visit> void for_each(Visit &&visit) const {
    for (const LaunchRecord &launch : slots_)
      if (launch.correlation_id != 0)
        visit(launch);
  }
  /// Forgets launches of epochs that no phase needs any more; their records may still come.
  /// `live_epochs` ascend.
  void forget_except(const std::vector<EpochId> &live_epochs);
  /// Notes a launch whose phase was cleared before it got here.
  void forget() { ++forgotten_; }
  /// True when an unknown record is accounted for by a forgotten launch. A count is enough: one
  /// id per forgotten launch would grow without bound when their records never come.
  bool take_forgotten() { return forgotten_ != 0 && forgotten_-- != 0; }
  size_t size() const { return used_; }

private:
  static constexpr uint64_t kGroupBits = 6;
  static constexpr size_t kGroup = size_t{1} << kGroupBits;

  size_t home(uint64_t id) const;
  size_t next(size_t slot) const { return (slot + kGroup) & (slots_.size() - 1); }
  /// Slot of the id, or the free one where it belongs; that of another when there is none.
  size_t find(uint64_t id) const;
  void resize(size_t slots);

  std::vector<LaunchRecord> slots_; ///< a power of two of them, more than a group; id 0: free
  size_t used_ = 0;
  uint64_t forgotten_ = 0;
};

} // namespace proton
