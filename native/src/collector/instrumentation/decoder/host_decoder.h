// Reads profile buffers of instrumented kernels. The reduction on the device follows the same
// rules:
//
// A block whose preamble is 0 is a skipped program. A block with another preamble than
// kBlockPreamble, or whose capacity does not fit the block or is not a whole number of records per
// segment, is corrupt. Neither is read. Of each segment the newest records are kept, from the
// oldest on.
//
// Within a warp, in that order, an end is paired with the latest open start of its scope; a start
// makes an older open start of its scope unpaired. Clocks are subtracted modulo their width.
// Asynchronous events are taken per program in the order of their clocks, counted from half a turn
// before the first one's (equal ones in the order of segments): a start whose warp has one open
// already is unpaired; an end takes the start of its own warp, else the oldest open one. Records of
// scopes that the layout does not know are unpaired.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collector/instrumentation/record_layout.h"
#include "record/cycle_record.h"
#include "record/timeline_record.h"

namespace proton {

struct BufferLayout {
  uint32_t scratch_bytes = 0;         ///< of one program's block
  uint32_t warps = 0;                 ///< of a program, whether they record or not
  std::span<const uint32_t> warp_ids; ///< warps that record, ascending; empty: all
  uint32_t scopes = 0;                ///< ids from this on are unknown
  bool has_short_clock = false;       ///< 32 bits
  uint32_t record_cost_cycles = 0;    ///< for each record after the start, up to the end

  uint32_t segments() const {
    return warp_ids.empty() ? warps : static_cast<uint32_t>(warp_ids.size());
  }
  uint32_t warp_of(uint32_t segment) const {
    return warp_ids.empty() ? segment : warp_ids[segment];
  }
  uint32_t data_at() const { return kBlockHeaderBytes + 4 * warps; }
  /// What is wrong with it, as a sentence; empty if buffers can be read.
  std::string fault() const;
};

struct BlockHeader {
  uint32_t program = 0;
  uint32_t processor = 0;
  uint64_t init_ns = 0;
  uint64_t pre_final_ns = 0;
  uint64_t post_final_ns = 0;
  bool is_lossy = false; ///< a warp wrote more records than its segment holds
};

/// A pair of records.
struct ScopeInstance {
  uint32_t scope = 0;
  uint32_t warp = 0;
  uint32_t end_warp = 0;
  bool is_async = false;
  uint64_t start_clock = 0; ///< as the device read it
  uint64_t end_clock = 0;
  uint64_t cycles = 0;       ///< between them, less what recording cost
  uint64_t shift_cycles = 0; ///< what recording cost its warp before the start
};

/// Receives what a buffer holds.
class BufferVisitor {
public:
  virtual ~BufferVisitor() = default;
  virtual void begin_program(const BlockHeader &) {}
  virtual void instance(const BlockHeader &header, const ScopeInstance &instance) = 0;
  virtual void end_program(const BlockHeader &) {}
};

/// Visits every program of the buffer of one launch, and adds to `totals` all but `launches`. Bytes
/// after the last whole block count as one corrupt program. Any bytes are accepted; with a faulty
/// layout nothing is read.
void decode(std::span<const std::byte> buffer, const BufferLayout &layout, BufferVisitor &visitor,
            KernelTotals &totals);

/// Adds one launch, as the device's reduction does. `scopes` has layout.scopes elements, whose
/// min_cycles start with all bits set.
void reduce(std::span<const std::byte> buffer, const BufferLayout &layout, KernelTotals &totals,
            std::span<ScopeTotals> scopes);

// Sums of scope instances, in the layout of the reduction on the device.

/// Totals without an instance.
ScopeTotals empty_scope_totals() noexcept;
void add_instance(ScopeTotals &totals, uint64_t cycles) noexcept;
/// Adds the sums of other launches.
void add_totals(ScopeTotals &totals, const ScopeTotals &other) noexcept;
void add_totals(KernelTotals &totals, const KernelTotals &other) noexcept;

/// Adds what it visits. `scopes` has an element for each scope of the layout.
class CycleTotals final : public BufferVisitor {
public:
  explicit CycleTotals(std::span<ScopeTotals> scopes) : scopes_(scopes) {}
  void instance(const BlockHeader &, const ScopeInstance &instance) override {
    add_instance(scopes_[instance.scope], instance.cycles);
  }

private:
  std::span<ScopeTotals> scopes_;
};

// The scope instances of one launch in the form of a TimelineRecord.

/// Decode one launch into it, hand `programs` and `instances` over, then `clear` it for the next.
class TimelineRows final : public BufferVisitor {
public:
  explicit TimelineRows(bool has_short_clock) : clock_mask_(clock_mask(has_short_clock)) {}
  void begin_program(const BlockHeader &header) override;
  void instance(const BlockHeader &header, const ScopeInstance &instance) override;
  void end_program(const BlockHeader &header) override;
  void clear();

  std::vector<TimelineProgram> programs;
  std::vector<TimelineScope> instances;

private:
  uint64_t clock_mask_;
};

// Joins starts with ends, as host_decoder.h describes it.

// One program's block of a profile buffer: its header and the records of each warp.

enum class BlockState : uint8_t { kWritten, kSkipped, kCorrupt };

struct RawRecord {
  uint64_t clock = 0;
  uint32_t scope = 0;
  bool is_end = false;
  bool is_async = false;
};

/// The records that a warp kept, oldest first.
class Segment {
public:
  Segment(std::span<const std::byte> bytes, uint32_t words_written, uint64_t clock_mask);
  uint32_t size() const { return kept_; }
  uint32_t lost() const { return lost_; }
  RawRecord operator[](uint32_t position) const;

private:
  const std::byte *bytes_;
  uint32_t slots_;
  uint32_t kept_;
  uint32_t lost_;
  uint32_t oldest_; ///< slot
  uint64_t clock_mask_;
};

/// Reads no byte outside of its block, whatever the block holds.
class BlockReader {
public:
  /// `block` has layout.scratch_bytes bytes; the layout has no fault.
  BlockReader(std::span<const std::byte> block, const BufferLayout &layout);
  BlockState state() const { return state_; }
  const BlockHeader &header() const { return header_; }
  /// Only for a written block.
  Segment segment(uint32_t index) const;

private:
  std::span<const std::byte> block_;
  const BufferLayout &layout_;
  BlockState state_ = BlockState::kCorrupt;
  BlockHeader header_;
  uint32_t segment_bytes_ = 0;
};

/// Rules of both pairings.
struct PairingRules {
  uint64_t clock_mask = 0;
  uint32_t record_cost_cycles = 0;

  uint64_t cost(uint64_t records) const { return records * record_cost_cycles; }
  /// From one clock to the other, less the cost of `records` records.
  uint64_t cycles(uint64_t start, uint64_t end, uint64_t records) const {
    uint64_t between = (end - start) & clock_mask;
    return between > cost(records) ? between - cost(records) : 0;
  }
};

/// The scopes of one warp at a time.
class WarpPairs {
public:
  explicit WarpPairs(PairingRules rules) : rules_(rules) {}
  void begin(uint32_t warp);
  /// The pair that the record completes. `position` is its place in the segment.
  std::optional<ScopeInstance> add(const RawRecord &record, uint32_t position);
  /// Records without a partner since `begin`. Call it at the end of the segment, once.
  uint64_t unpaired() const { return unpaired_ + open_count_; }

private:
  struct Start {
    bool is_open = false;
    uint32_t position = 0;
    uint64_t clock = 0;
  };
  PairingRules rules_;
  uint32_t warp_ = 0;
  uint64_t unpaired_ = 0;
  uint64_t open_count_ = 0;
  std::array<Start, kMaxScopes> starts_;
};

/// The asynchronous events of one program at a time.
class AsyncPairs {
public:
  explicit AsyncPairs(PairingRules rules) : rules_(rules) {}
  void add(const RawRecord &record, uint32_t warp, uint32_t position) {
    entries_.push_back({record, warp, position});
  }
  /// Pairs what was added, in the order of their ends, and forgets it. Returns the number of
  /// unpaired records.
  template <typename Emit> uint64_t finish(Emit emit) {
    uint64_t unpaired = 0;
    sort();
    for (const Entry &entry : entries_)
      if (std::optional<ScopeInstance> found = pair(entry, unpaired))
        emit(*found);
    unpaired += open_.size();
    open_.clear();
    entries_.clear();
    return unpaired;
  }

private:
  struct Entry {
    RawRecord record;
    uint32_t warp = 0;
    uint32_t position = 0;
  };
  void sort();
  std::optional<ScopeInstance> pair(const Entry &entry, uint64_t &unpaired);

  PairingRules rules_;
  std::vector<Entry> entries_;
  std::vector<Entry> open_; ///< starts, oldest first
};

} // namespace proton
