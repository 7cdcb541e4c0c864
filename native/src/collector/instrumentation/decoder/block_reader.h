// One program's block of a profile buffer: its header and the records of each warp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collector/instrumentation/decoder/host_decoder.h"

namespace proton {

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

} // namespace proton
