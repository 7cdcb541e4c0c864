// What a collector counts on each thread, as parts of the ranges that are open there.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "context/thread/shadow_stack.h"

namespace proton {

inline constexpr size_t kMostCounts = 6;
using Counts = std::array<int64_t, kMostCounts>;

/// What counts. It lives as long as the process: threads may still ask one that was replaced.
struct CountSource {
  /// Sets what the calling thread counted since it asked before. False: that is not known, or is
  /// part of what the next call sets.
  bool (*take)(const CountSource &source, Counts &counts) noexcept = nullptr;
  std::vector<uint32_t> metrics; ///< from `number_of_counts`, `kMostCounts` at most
};
/// The number of the metric to which counts of this name add.
uint32_t number_of_counts(std::string_view name);
/// Sets the source that is asked where timed ranges begin and end; null: none. [any thread]
void set_count_source(const CountSource *source) noexcept;
inline std::atomic<const CountSource *> g_count_source{nullptr}; ///< only for the function below
inline const CountSource *count_source() noexcept {
  return g_count_source.load(std::memory_order_acquire);
}

/// The open ranges of one thread. What is counted belongs to the innermost of them, so that the
/// counts of a range and those of all ranges inside add up to what was counted meanwhile.
class RangeCounts {
public:
  /// The top frame of the stack has been opened for a range. [owning thread, noexcept]
  void enter(const CountSource &source, ShadowStack &stack) noexcept;
  /// The counts of the range whose frame is about to be closed, without those of ranges inside,
  /// until the next call; null: they are not known. [owning thread, noexcept]
  const Counts *leave(const CountSource &source, ShadowStack &stack, uint64_t scope_id) noexcept;
  /// Of the counts that were returned.
  const CountSource &source() const noexcept { return *source_; }

private:
  struct Range {
    uint32_t index = 0; ///< of its frame
    uint64_t scope_id = 0;
    Counts counts{};
  };
  void settle(const CountSource &source, ShadowStack &stack) noexcept;
  void take() noexcept;

  const CountSource *source_ = nullptr;
  std::vector<Range> open_;
  Counts left_{};
};

} // namespace proton
