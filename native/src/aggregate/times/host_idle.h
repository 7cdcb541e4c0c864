// What the host did while no device worked, on behalf of one phase of a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "aggregate/times/interval_union.h"
#include "calltree/call_path_tree.h"

namespace proton {

/// Splits gaps in the work of all devices together among the nodes at which the main thread was
/// seen. Work is reported late and nearly in order, samples come at once and in order; either waits
/// for the other in bounded memory. Time before the first work and after the last one counts.
///
/// Not synchronised: the aggregator's lock guards it.
class HostIdle {
public:
  /// A device worked.
  void add_work(int64_t start_ns, int64_t end_ns);
  /// The main thread was at the node.
  void add_sample(NodeIndex node, int64_t start_ns, int64_t end_ns);
  /// Writes what is known so far into the tree; nothing if no device worked.
  void publish(CallPathTree &tree);

private:
  static constexpr size_t kFewestOpen = 32768; ///< as many as a device's
  static constexpr size_t kMostWaiting = size_t{1} << 16;

  struct Span {
    int64_t start_ns;
    int64_t end_ns;
    NodeIndex node;
  };
  struct Idle {
    int64_t known_ns = 0;
    int64_t shown_ns = 0; ///< in the tree
  };

  void add_gap(const Gap &gap);
  void match();

  IntervalUnion work_{kFewestOpen};
  bool has_closed_ = false;
  std::deque<Span> samples_; ///< that no closed gap has passed yet
  std::deque<Gap> gaps_;     ///< closed ones that no sample has passed yet
  std::unordered_map<NodeIndex, Idle> idle_;
};

} // namespace proton
