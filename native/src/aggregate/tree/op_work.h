// Work of operators by their arguments: counted where they run, known when the program says so.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "calltree/call_path_tree.h"

namespace proton {

/// The metric whose values are numbers of works, as `works` lists them: each is done once.
const MetricName &work_metric();

/// What a work does: so much of a metric. Null: that is not known.
struct WorkValue {
  const MetricName *metric = nullptr;
  int64_t amount = 0;
};
/// From now on known to all trees. [aggregator's lock held]
void set_work_value(int32_t work, const WorkValue &value);

/// Works done in one tree. Not synchronised: the aggregator's lock guards it.
class OpWork {
public:
  void add(NodeIndex node, int64_t work) {
    ++counts_[uint64_t{node} << 32 | static_cast<uint32_t>(work)];
  }
  /// Writes what is known by now into the tree, less what was written before: to the kernel of an
  /// operator that has one, so that tables of kernels show it, else to the node. Where the program
  /// gave flops to a node above or below, these count, and the others go to `derived_flops`.
  void publish(CallPathTree &tree);

private:
  using Place = std::pair<NodeIndex, const MetricName *>;
  void collect();

  std::unordered_map<uint64_t, int64_t> counts_; ///< of works not in `sums_`, by (node, work)
  // With 64 bits of mantissa.
  std::map<Place, long double> sums_;
  std::map<Place, long double> written_;
};

} // namespace proton
