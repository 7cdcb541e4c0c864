// Lanes for what overlaps in time: each range stands in the first one that is free.
#pragma once

#include <cstdint>
#include <vector>

namespace proton {

/// Take ranges by ascending start, the longer one first.
class Lanes {
public:
  /// Lane of a range; one may begin when another ends.
  size_t place(uint64_t start, uint64_t end) {
    size_t lane = 0;
    while (lane < ends_.size() && ends_[lane] > start)
      ++lane;
    if (lane == ends_.size())
      ends_.push_back(0);
    ends_[lane] = end;
    return lane;
  }

private:
  std::vector<uint64_t> ends_;
};

} // namespace proton
