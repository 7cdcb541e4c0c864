// Lanes for ranges that overlap in time: each range goes to the first free one.
#pragma once

#include <cstdint>
#include <vector>

namespace proton {

/// Call `place` by ascending start, the longer range first.
class Lanes {
public:
  /// Lane of a range, which may begin when another ends.
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
