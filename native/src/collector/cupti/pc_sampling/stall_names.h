// Numbers of stall reasons, and the metrics that stand for them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace proton {

/// CUPTI counts each reason twice: always, and when nothing was issued. Not synchronised.
class StallNames {
public:
  struct Reason {
    const char *metric;            ///< "stalled_wait"
    const char *not_issued_metric; ///< "not_issued_wait"
  };

  /// Number of what CUPTI calls "smsp__pcsamp_warps_issue_stalled_wait_not_issued"; empty for other
  /// names. It is twice the reason's own number, plus 1 for the second kind.
  std::optional<uint16_t> find_or_add(std::string_view name);
  static size_t reason(uint16_t number) { return number / 2; }
  static bool is_not_issued(uint16_t number) { return number % 2 != 0; }
  /// The texts live as long as the process.
  const Reason &operator[](size_t reason) const { return reasons_[reason]; }
  size_t size() const { return reasons_.size(); }

private:
  static constexpr size_t kMostReasons = 256;
  std::vector<std::string> names_;
  std::vector<Reason> reasons_;
};

} // namespace proton
