// Widens correlation ids of vendors' libraries to 64 bits; those of CUPTI have 32 bits and wrap.
#pragma once

#include <atomic>
#include <cstdint>

namespace proton {

/// The launching and the completing side widen alike: an id stands for the number nearest to the
/// newest one that ends in the same 32 bits. That is exact as long as a record comes within two
/// thousand million calls of its launch.
class CorrelationIds {
public:
  /// Ids of vendors' libraries begin here, far from those of next_correlation_id.
  static constexpr uint64_t kFirst = uint64_t{1} << 62;
  static constexpr uint64_t kLast = (uint64_t{1} << 63) - 1;

  /// [any thread, no lock]
  uint64_t widen(uint32_t id) const noexcept {
    uint64_t newest = newest_.load(std::memory_order_relaxed);
    return newest + static_cast<uint64_t>(past(newest, id));
  }
  /// Same for the id of a call that begins now. [launching thread, no lock]
  uint64_t widen_newest(uint32_t id) noexcept {
    uint64_t newest = newest_.load(std::memory_order_relaxed);
    int64_t distance = past(newest, id);
    uint64_t wide = newest + static_cast<uint64_t>(distance);
    // Rarely, so that threads do not pass one cache line around.
    if (distance > kStep)
      while (newest < wide &&
             !newest_.compare_exchange_weak(newest, wide, std::memory_order_relaxed)) {
      }
    return wide;
  }

  /// An id above all that `widen_newest` has returned.
  uint64_t above_all() const noexcept {
    return newest_.load(std::memory_order_relaxed) + static_cast<uint64_t>(kStep) + 1;
  }

private:
  static constexpr int64_t kStep = 1 << 20;
  static int64_t past(uint64_t newest, uint32_t id) noexcept {
    return static_cast<int32_t>(id - static_cast<uint32_t>(newest));
  }
  // Above the beginning, so that an id that looks older stays above it too.
  std::atomic<uint64_t> newest_{kFirst + (uint64_t{1} << 32)};
};

} // namespace proton
