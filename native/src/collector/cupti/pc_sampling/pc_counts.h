// How often each instruction was sampled, by the reason that its warp waited.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "driver/cupti/cupti_pc_sampling.h"

namespace proton {

/// A function of a cubin.
struct FunctionKey {
  uint64_t crc = 0;
  uint32_t function = 0;
  bool operator==(const FunctionKey &other) const = default;
};

/// An instruction of a function.
struct PcKey {
  FunctionKey of;
  uint64_t offset = 0;
  bool operator==(const PcKey &other) const = default;
};

struct PcKeyHash {
  size_t operator()(const FunctionKey &key) const noexcept {
    return (key.crc ^ (uint64_t{key.function} << 40)) * 0x9E3779B97F4A7C15ull >> 16;
  }
  size_t operator()(const PcKey &key) const noexcept {
    return ((*this)(key.of) ^ key.offset) * 0xC2B2AE3D27D4EB4Full >> 8;
  }
};

/// Memory is bounded, yet no sample is lost: past the limits samples are counted for their function
/// as a whole, or for all other functions. Not synchronised.
class PcCounts {
public:
  struct Count {
    uint16_t reason; ///< of StallNames
    uint64_t samples;
  };
  static constexpr uint64_t kNoOffset = ~uint64_t{0};
  static constexpr size_t kMostPcs = size_t{1} << 18;
  static constexpr size_t kMostFunctions = size_t{1} << 14;

  /// Adds CUPTI's counts of one PC. `reasons` has a number for each of CUPTI's, or -1 to ignore it.
  void add(const cupti::PcData &pc, const std::vector<int32_t> &reasons);
  /// Adds the counts of another object.
  void absorb(const PcCounts &other);
  bool is_empty() const { return counts_.empty(); }
  void clear();
  /// Approximate memory.
  size_t bytes() const { return bytes_; }

  const std::unordered_map<PcKey, std::vector<Count>, PcKeyHash> &counts() const { return counts_; }
  /// Name of a function in `counts`, as the device's tools know it.
  const std::string &name(const FunctionKey &key) const;

private:
  FunctionKey function_of(FunctionKey key, const char *name);
  std::vector<Count> &counts_of(FunctionKey function, uint64_t offset);
  void add(std::vector<Count> &counts, const Count &count);

  std::unordered_map<PcKey, std::vector<Count>, PcKeyHash> counts_;
  std::unordered_map<FunctionKey, std::string, PcKeyHash> names_;
  size_t bytes_ = 0;
};

// Numbers of stall reasons, and the metrics that stand for them.

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
