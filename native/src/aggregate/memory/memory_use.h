// What the program holds of the memory of devices, by the rows of a tree that allocated it.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "calltree/call_path_tree.h"

namespace proton {

/// One phase of a session. Keeps what was alive at the moment of the largest sum: at a new one only
/// the number of the moment changes, and a row notes what it held when its memory next changes.
/// Not synchronised: the aggregator's lock guards it.
class MemoryUse {
public:
  // What is alive by now, where the phase did not follow it: at its beginning, and after a pause.
  // `begin_alive`, then `add_alive` for all of it, then `end_alive`.

  void begin_alive(uint32_t step);
  void add_alive(NodeIndex node, int32_t device, int64_t bytes);
  void end_alive();

  // A change. Steps are numbered by the sink; a row that holds more blocks at the end of each of
  // them is said to grow.

  void allocated(NodeIndex node, int32_t device, int64_t bytes, uint32_t step);
  void freed(NodeIndex node, int32_t device, int64_t bytes, uint32_t step);
  /// Bytes that were asked for and not found. The moment counts as the largest sum.
  void out_of_memory(NodeIndex node, int32_t device, int64_t bytes);
  /// Not known block by block, as when the allocator has another sum than its blocks have.
  void shift(NodeIndex node, int32_t device, int64_t bytes);

  /// Rows that held more at the end of each step so far, of two at least.
  std::vector<NodeIndex> growing() const;
  /// Writes the columns so far.
  void publish(CallPathTree &tree);

private:
  struct Row {
    int64_t live = 0;
    int64_t at_peak = 0; ///< if `moment` is that of the device; else what is live
    int64_t allocated = 0;
    int64_t freed = 0;
    int64_t live_at_begin = 0;
    uint64_t moment = 0;
    uint32_t blocks = 0;
    uint32_t blocks_before = 0; ///< when the newest step began
    uint32_t step = 0;          ///< the newest in which a block came or went
    uint32_t grown = 0;         ///< steps that left more blocks than there were before
    bool is_used = false;
  };
  struct Device {
    std::vector<Row> rows; ///< by node
    int64_t live = 0;
    int64_t peak = -1;
    uint64_t moment = 1; ///< grows with each new peak
    NodeIndex failed_at = kNoNode;
    int64_t failed_bytes = 0;
  };

  Device &device(int32_t index);
  Row &row(Device &device, NodeIndex node);
  Row &changed(Device &device, NodeIndex node, uint32_t step);
  static void note_peak(Device &device);
  void publish_rare(MetricColumns &metrics, const char *name, NodeIndex node, int64_t bytes);
  int64_t growth(const Row &row, uint32_t fewest_steps) const;

  std::set<std::pair<const char *, NodeIndex>> published_; ///< of columns that few rows have
  std::vector<Device> devices_;
  uint32_t first_step_ = 0;
  uint32_t last_step_ = 0;
  bool has_begun_ = false;
};

} // namespace proton
