#include "aggregate/kernels/fair_split.h"

#include <algorithm>
#include <cmath>

namespace proton {

FairSplit::FairSplit(std::span<const int64_t> weights)
    : shares_(weights.size()), owed_(weights.size()), parts_(weights.size()),
      order_(weights.size()) {
  double sum = 0;
  for (int64_t weight : weights)
    sum += static_cast<double>(std::max<int64_t>(weight, 0));
  for (size_t i = 0; i < weights.size(); ++i) {
    auto weight = static_cast<double>(std::max<int64_t>(weights[i], 0));
    shares_[i] = sum > 0 ? weight / sum : 1.0 / static_cast<double>(weights.size());
    order_[i] = static_cast<uint32_t>(i);
  }
}

std::span<const uint64_t> FairSplit::split(uint64_t count) {
  uint64_t left = count;
  for (size_t i = 0; i < shares_.size(); ++i) {
    owed_[i] += shares_[i] * static_cast<double>(count);
    auto part = static_cast<uint64_t>(std::max(0.0, std::floor(owed_[i])));
    parts_[i] = std::min(part, left);
    left -= parts_[i];
  }
  for (size_t i = 0; i < shares_.size(); ++i)
    owed_[i] -= static_cast<double>(parts_[i]);
  if (left == 0)
    return parts_;
  // Fewer than there are parts, but for the errors of huge numbers.
  std::sort(order_.begin(), order_.end(), [&](uint32_t one, uint32_t other) {
    return owed_[one] != owed_[other] ? owed_[one] > owed_[other] : one < other;
  });
  for (size_t next = 0; left != 0; next = (next + 1) % order_.size()) {
    uint32_t i = order_[next];
    bool is_huge = left > order_.size();
    uint64_t given = is_huge ? left - order_.size() : 1;
    parts_[i] += given;
    owed_[i] -= static_cast<double>(given);
    left -= given;
  }
  return parts_;
}

} // namespace proton
