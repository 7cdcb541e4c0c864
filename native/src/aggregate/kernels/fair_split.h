// Whole numbers split by shares, so that parts add up and rounding errors do not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace proton {

/// Each part of a count is its share, rounded; what rounding took or gave is made up for by the
/// next counts. So the parts of one count add up to it, and those of many come near to the shares.
class FairSplit {
public:
  /// At least one weight; negative ones and all of them 0 count as equal shares of nothing.
  explicit FairSplit(std::span<const int64_t> weights);
  /// As many as weights; their sum is `count`. Valid until the next call.
  std::span<const uint64_t> split(uint64_t count);

private:
  std::vector<double> shares_;
  std::vector<double> owed_; ///< of counts so far, not given yet
  std::vector<uint64_t> parts_;
  std::vector<uint32_t> order_;
};

} // namespace proton
