// Joins starts with ends, as host_decoder.h describes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collector/instrumentation/decoder/host_decoder.h"

namespace proton {

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
