// The union of intervals that come nearly in order, in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace proton {

/// Time between two intervals of a union, and the owner of the interval that ended it.
struct Gap {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint32_t owner = 0;
};

/// The newest `fewest_open` disjoint intervals at least stay open: what comes before, between or
/// across them is exact, in any order. Older ones are closed for good, as a sum; of what comes
/// later and began before their end, the part before that end counts as late and not as covered. So
/// the true measure lies between `covered_ns()` and `covered_ns() + late_ns()`.
///
/// Intervals that touch are one. Its owner is that of the part that begins first.
///
/// Records of several threads come in blocks of thousands, one thread after the other. So what does
/// not begin last is put aside, and merged when many have come or somebody reads.
class IntervalUnion {
public:
  explicit IntervalUnion(size_t fewest_open) : fewest_open_(fewest_open) {}

  /// Adds [start, end). True when twice as many are open as must be: `close_older` is due.
  [[nodiscard]] bool add(int64_t start_ns, int64_t end_ns, uint32_t owner) {
    if (!blocks_.empty() && start_ns < blocks_.back().start_ns) {
      aside_.push_back({start_ns, end_ns, owner});
    } else if (!blocks_.empty() && start_ns <= blocks_.back().end_ns) {
      blocks_.back().end_ns = std::max(blocks_.back().end_ns, end_ns);
      return false;
    } else {
      blocks_.push_back({start_ns, end_ns, owner});
    }
    return blocks_.size() + aside_.size() >= 2 * fewest_open_;
  }
  /// `visit(Gap)` gets the gap in front of each interval that is closed.
  template <typename Visit> void close_older(Visit &&visit) {
    merge();
    if (blocks_.size() <= fewest_open_)
      return;
    size_t count = blocks_.size() - fewest_open_;
    visit_gaps(count, visit);
    forget_older(count);
  }

  bool empty() const { return blocks_.empty(); }
  int64_t covered_ns();
  /// After `covered_ns`, it counts what came until then.
  int64_t late_ns() const { return late_ns_; }
  /// Start and owner of the first interval of all. Not empty.
  int64_t first_start_ns() { return first().start_ns; }
  uint32_t first_owner() { return first().owner; }
  /// Not empty.
  int64_t last_end_ns() {
    merge();
    return blocks_.back().end_ns;
  }
  /// The gaps in front of open intervals, in order.
  template <typename Visit> void for_each_open_gap(Visit &&visit) {
    merge();
    visit_gaps(blocks_.size(), visit);
  }

private:
  struct Block {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t owner;
  };

  const Block &first() {
    merge();
    return has_closed_ ? first_closed_ : blocks_.front();
  }
  /// Puts what stands aside where it belongs.
  void merge();
  void cut_late();
  void forget_older(size_t count);
  template <typename Visit> void visit_gaps(size_t count, Visit &&visit) const {
    bool has_before = has_closed_;
    int64_t before_ns = closed_until_ns_;
    for (size_t i = 0; i < count; ++i) {
      if (has_before)
        visit(Gap{before_ns, blocks_[i].start_ns, blocks_[i].owner});
      before_ns = blocks_[i].end_ns;
      has_before = true;
    }
  }

  size_t fewest_open_;
  std::vector<Block> blocks_; ///< open, disjoint and in order
  std::vector<Block> aside_;  ///< that began before the newest of `blocks_`, as they came
  Block first_closed_{};
  bool has_closed_ = false;
  int64_t closed_until_ns_ = 0;
  int64_t closed_ns_ = 0;
  int64_t late_ns_ = 0;
};

} // namespace proton
