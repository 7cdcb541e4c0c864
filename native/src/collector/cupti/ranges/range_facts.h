// What a profile says about launches that were counted exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace proton {

/// Since the last start.
struct RangeFacts {
  std::vector<std::string> metrics;
  std::string counted;      ///< "launch" or "scope"
  std::string error;        ///< why the first context that cannot be counted cannot
  uint64_t ranges = 0;      ///< with values
  uint64_t lost_ranges = 0; ///< of which libcupti kept nothing, or no values
  uint64_t not_counted = 0; ///< launches, or scopes, that went on without
};

} // namespace proton
