// Samples of a kernel as nodes and metrics of a call-path tree.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "calltree/call_path_tree.h"
#include "record/cycle_record.h"
#include "record/record.h"

namespace proton {

// Whole numbers split by shares, so that parts add up and rounding errors do not.

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

/// Where samples of a kernel may go.
struct SampledLeaf {
  CallPathTree *tree = nullptr; ///< null: nowhere
  NodeIndex node = 0;
  int64_t time_ns = 0; ///< their share
};

/// Adds the samples: to a node per line below a leaf, and to the leaf itself where no line is
/// known. With several leaves they are split by time; the parts add up to what was counted.
void add_samples(const PcSampleRecord &record, const std::vector<SampledLeaf> &leaves);

// Cycles of scopes inside kernels as nodes and metrics of a call-path tree.

/// Adds a node per scope below the leaf of its kernel, along the scopes around it: `cycles`, what
/// they mean for one warp (`normalized_cycles`), how many pairs of records (`instances`) and how
/// they spread. The leaf gets the counts of what was recorded and lost.
void add_cycles(CallPathTree &tree, NodeIndex kernel, const CycleRecord &record);

/// Calls `lose(reason, count)` for each kind of records that were lost.
template <typename Lose> void count_losses(const KernelTotals &totals, Lose lose) {
  if (totals.lost_records != 0)
    lose("records inside kernels replaced by newer ones", totals.lost_records);
  if (totals.corrupt_programs != 0)
    lose("programs with unreadable records inside kernels", totals.corrupt_programs);
}

// How long devices ran each kernel, wherever it was launched.

/// The whole that shares of call paths are parts of. Not synchronised: the aggregator's lock
/// guards it.
class KernelTimes {
public:
  struct Time {
    int64_t window_ns = 0; ///< since the newest `begin_window`
    int64_t ever_ns = 0;   ///< since `start`
  };

  void start();
  void stop();
  bool is_on() const { return is_on_; }
  void begin_window();
  void add(const KernelRecord &record);
  /// By the name that the device's tools know.
  Time find(std::string_view raw_name) const;

  /// That name of the kernel of a record.
  static std::string_view raw_name(const KernelRecord &record);

private:
  static constexpr size_t kMostKnown = size_t{1} << 16;
  Time &entry(const KernelRecord &record);

  bool is_on_ = false;
  std::map<std::string, Time, std::less<>> times_; ///< addresses stay
  std::unordered_map<uint64_t, Time *> known_;     ///< by identity of a record
};

} // namespace proton
