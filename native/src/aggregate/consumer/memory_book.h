// Memory of devices on the consuming side: the blocks that are alive, and who allocated them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "aggregate/consumer/epoch_table.h"
#include "aggregate/times/tick_anchors.h"
#include "record/record.h"

namespace proton {

/// Follows an allocator from the first record on, also while no session listens, and tells the
/// phases that listen. The sum over the rows of a phase is what the allocator counts: what it holds
/// beyond the known blocks stands in a row of its own. Not synchronised: the aggregator's lock
/// guards it.
class MemoryBook {
public:
  MemoryBook(EpochTable &epochs, const TickAnchors &ticks) : epochs_(epochs), ticks_(ticks) {}

  void add(const MemoryRecord &record);
  /// An epoch begins: phases that are new in it begin with what is alive. After the records of
  /// before were added.
  void begin_epoch(EpochId id);
  /// The first record of a new watch comes next, or none at all.
  void forget();
  /// Contexts that must not be freed.
  void append_ids(std::vector<ContextId> &ids) const;

private:
  struct Block {
    int64_t bytes = 0;
    int32_t device = -1;
    ContextId shadow = 0;
    ContextId python = 0;
    bool is_placed = false; ///< a session listened
  };
  using Blocks = std::unordered_map<uint64_t, Block>;
  /// What the allocator says of a device.
  struct Account {
    bool is_known = false;
    int64_t blocks = 0;  ///< sum of the known ones
    int64_t unknown = 0; ///< what it counts beyond
    int64_t peak = 0;
    int64_t shown = -1; ///< in timelines
  };

  /// From now on the lines of the program are recorded that allocate what grows.
  void watch_growing(const Epoch &epoch);
  /// Hands `change` each member that takes memory, with what it knows of it.
  template <typename Change> static void tell(const Epoch *epoch, Change &&change);
  static NodeIndex node_of(const EpochMember &member, const Block &block);
  void hold(const Block &block, bool holds);
  void drop(Blocks::iterator known, const Epoch *epoch);
  /// The allocator counted so much before a record.
  void reconcile(Account &account, int32_t device, int64_t counted, const Epoch *epoch);
  static void shift_unknown(Account &account, int32_t device, int64_t bytes, const Epoch *epoch);
  void add_block(const MemoryRecord &record, Account &account, const Epoch *epoch);
  void free_block(const MemoryRecord &record, Account &account, const Epoch *epoch);
  void show(Account &account, const MemoryRecord &record, const Epoch &epoch);

  EpochTable &epochs_;
  const TickAnchors &ticks_;
  Blocks blocks_;                                 ///< by address
  std::unordered_map<uint64_t, uint32_t> places_; ///< (shadow, python) -> how many blocks
  std::unordered_map<int32_t, Account> accounts_; ///< by device
  EpochId epoch_ = 0;                             ///< of the newest record
  uint32_t step_ = 0;                             ///< the same
};

} // namespace proton
