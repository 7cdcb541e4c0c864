// The newest slices of a lane that were handed out, by time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace proton {

struct SliceTimes {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

/// They are kept in blocks that know their span, so that a late slice is compared with few.
class SettledSlices {
public:
  static constexpr size_t kBlock = 64;
  static constexpr size_t kMaxBlocks = 32;

  void add(const SliceTimes &slice) {
    if (blocks_.empty() || blocks_.back().size == kBlock)
      blocks_.emplace_back();
    Block &block = blocks_.back();
    block.slices[block.size++] = slice;
    block.start_ns = std::min(block.start_ns, slice.start_ns);
    block.end_ns = std::max(block.end_ns, slice.end_ns);
    if (blocks_.size() <= kMaxBlocks)
      return;
    forgotten_ns_ = std::max(forgotten_ns_, blocks_.front().end_ns);
    blocks_.pop_front();
  }

  /// Whether `is_it` holds for a slice that ends after `start_ns` and begins at `end_ns` or before.
  /// May also look at others.
  template <typename IsIt> bool any_near(int64_t start_ns, int64_t end_ns, IsIt is_it) const {
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block &block) {
      return block.end_ns > start_ns && block.start_ns <= end_ns &&
             std::any_of(block.slices.begin(), block.slices.begin() + block.size, is_it);
    });
  }

  /// Newest end of a slice that is no longer kept.
  int64_t forgotten_ns() const { return forgotten_ns_; }

private:
  struct Block {
    int64_t start_ns = INT64_MAX; ///< of the first
    int64_t end_ns = INT64_MIN;   ///< newest
    uint32_t size = 0;
    std::array<SliceTimes, kBlock> slices;
  };

  std::deque<Block> blocks_;
  int64_t forgotten_ns_ = INT64_MIN;
};

} // namespace proton
