// Values that the program gave to instances of scopes and kernels, until their events are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "correlation/capture_store.h"
#include "record/record.h"
#include "record/timeline_event.h"

namespace proton {

/// A frame that is open on a thread.
struct OpenInstance {
  uint32_t thread = kNoThread;
  ContextId at = 0;
  uint64_t scope_id = 0; ///< of the frame: another one may have its path later
  EpochId epoch = 0;
};

/// Instances of one path follow one another on a thread, so the time of a value says which it is
/// of, though the record of an instance comes long after. Not synchronised: the aggregator's lock
/// guards it.
class InstanceValues {
public:
  /// Values of one name are summed, properties replaced, as in a tree. `at_ns` is of TickClock.
  void add(const OpenInstance &instance, int64_t at_ns, const UserMetric &metric);
  /// Values of the newest instance that got one until `to_ns`, unless that was before `from_ns`;
  /// those of earlier ones are forgotten. Times are of TickClock; 0 for `to_ns` takes that of
  /// the oldest instance.
  std::optional<EventValues> take(uint32_t thread, ContextId at, int64_t from_ns, int64_t to_ns);
  /// Forgets values of epochs for which `is_over` is true.
  template <typename Predicate> void forget_if(Predicate &&is_over) {
    for (auto item = given_.begin(); item != given_.end();) {
      std::erase_if(item->second, [&](const Given &each) { return is_over(each.epoch); });
      item = item->second.empty() ? given_.erase(item) : std::next(item);
    }
  }
  /// Paths of threads that have values.
  size_t size() const { return given_.size(); }

private:
  struct Given {
    uint64_t scope_id = 0;
    EpochId epoch = 0;
    int64_t at_ns = 0; ///< of its first value
    std::vector<UserMetric> metrics;
  };
  static uint64_t key(uint32_t thread, ContextId at) { return (uint64_t{thread} << 32) | at; }

  /// Each in order of time. What is taken stands in front, whatever is pending behind it.
  std::unordered_map<uint64_t, std::list<Given>> given_;
};

} // namespace proton
