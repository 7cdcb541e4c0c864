// What a collector counts on each thread, as parts of the ranges that are open there.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "context/thread/shadow_stack.h"

namespace proton {

/// Sets what the calling thread counted since it asked before. False: that is not known, or is part
/// of what the next call sets.
using CountSource = bool (*)(int64_t &count) noexcept;
/// Sets the source that is asked where timed ranges begin and end, and the name of the metric to
/// which its counts add; null: none. [any thread]
void set_count_source(CountSource source, std::string_view metric);
inline std::atomic<CountSource> g_count_source{nullptr}; ///< only for the function below
inline CountSource count_source() noexcept {
  return g_count_source.load(std::memory_order_acquire);
}
/// The number of the metric of the newest source.
uint32_t count_metric() noexcept;

/// The open ranges of one thread. What is counted belongs to the innermost of them, so that the
/// counts of a range and those of all ranges inside add up to what was counted meanwhile.
class RangeCounts {
public:
  /// The top frame of the stack has been opened for a range. [owning thread, noexcept]
  void enter(CountSource source, ShadowStack &stack) noexcept;
  /// The count of the range whose frame is about to be closed, without those of ranges inside,
  /// until the next call; null: it is not known. [owning thread, noexcept]
  const int64_t *leave(CountSource source, ShadowStack &stack, uint64_t scope_id) noexcept;

private:
  struct Range {
    uint32_t index = 0; ///< of its frame
    uint64_t scope_id = 0;
    int64_t count = 0;
  };
  void close_ended(ShadowStack &stack) noexcept;
  void take(CountSource source) noexcept;

  std::vector<Range> open_;
  int64_t left_ = 0;
};

} // namespace proton
