// The block that one program wrote, as a warp of the reduction reads it.
#pragma once

#include "collector/instrumentation/device/reduce_task.h"
#include "collector/instrumentation/device/warp.h"
#include "collector/instrumentation/record_layout.h"

namespace proton::device {

PB_DEVICE uint32_t load_word(const unsigned char *from) {
  return *reinterpret_cast<const uint32_t *>(from);
}

/// Records of one warp, starting with the oldest that was kept.
struct Segment {
  const unsigned char *data;
  uint32_t slots;
  uint32_t kept;
  uint32_t oldest;

  /// Tag in the low word, as in memory.
  PB_DEVICE uint64_t load(uint32_t position) const {
    uint32_t slot = oldest + position;
    slot -= slot >= slots ? slots : 0;
    const unsigned char *from = data + static_cast<uint64_t>(slot) * kRecordBytes;
    if ((reinterpret_cast<uintptr_t>(from) & 7) == 0)
      return *reinterpret_cast<const uint64_t *>(from);
    return load_word(from) | static_cast<uint64_t>(load_word(from + 4)) << 32;
  }
};

struct Record {
  uint64_t clock;
  uint32_t scope;
  bool is_end;
  bool is_event; ///< asynchronous

  PB_DEVICE Record(uint64_t word, uint64_t clock_mask) {
    auto tag = static_cast<uint32_t>(word);
    clock = (static_cast<uint64_t>(tag & kClockHighMask) << 32 | word >> 32) & clock_mask;
    scope = tag >> kScopeShift & kScopeMask;
    is_end = (tag >> kEndBit & 1) != 0;
    is_event = (tag >> kAsyncBit & 1) != 0;
  }
};

class ProgramView {
public:
  /// Reads preamble, capacity and, one lane each, what the warps wrote.
  PB_DEVICE ProgramView(const ReduceTask &task, uint64_t index)
      : block_(task.buffer + index * task.scratch_bytes),
        data_at_(kBlockHeaderBytes + 4 * task.warps) {
    preamble_ = load_word(block_ + kPreambleAt);
    uint32_t capacity = load_word(block_ + kCapacityAt);
    for_lanes([&](uint32_t lane) {
      uint32_t warp = lane < task.segments ? task.warp_ids[lane] : 0;
      uint32_t words = load_word(block_ + kBlockHeaderBytes + 4 * warp);
      written_[lane] = lane < task.segments ? words / kRecordWords : 0;
    });
    bool fits =
        capacity <= task.scratch_bytes - data_at_ && capacity % (task.segments * kRecordBytes) == 0;
    is_written_ = preamble_ == kBlockPreamble && fits;
    slots_ = is_written_ ? capacity / task.segments / kRecordBytes : 0;
  }

  PB_DEVICE bool is_written() const { return is_written_; }
  PB_DEVICE bool is_skipped() const { return preamble_ == 0; }
  /// Segments that lost records, one bit each.
  PB_DEVICE uint32_t lossy() const {
    Lanes<bool> is_lossy;
    for_lanes([&](uint32_t lane) { is_lossy[lane] = written_[lane] > slots_; });
    return ballot(is_lossy);
  }
  /// A lane's segment, for code in which lanes read segments of their own.
  PB_DEVICE Segment lane_segment(uint32_t lane) const { return make(lane, written_[lane]); }
  PB_DEVICE uint32_t lane_written(uint32_t lane) const { return written_[lane]; }
  PB_DEVICE Segment segment(uint32_t index) const {
    return make(index, broadcast(written_, index));
  }

  // Marks, in the place of the program's first time, that it has records of events.
  PB_DEVICE static void mark_events(const ReduceTask &task, uint64_t index) {
    auto *word = reinterpret_cast<uint32_t *>(task.buffer + index * task.scratch_bytes + kInitAt);
    word[0] = kAllLanes;
    word[1] = kAllLanes;
  }
  PB_DEVICE static bool has_events(const ReduceTask &task, uint64_t index) {
    const unsigned char *at = task.buffer + index * task.scratch_bytes + kInitAt;
    return (load_word(at) & load_word(at + 4)) == kAllLanes;
  }
  PB_DEVICE static void clear(const ReduceTask &task, uint64_t index) {
    *reinterpret_cast<uint32_t *>(task.buffer + index * task.scratch_bytes + kPreambleAt) = 0;
  }

private:
  PB_DEVICE Segment make(uint32_t index, uint32_t written) const {
    Segment segment;
    segment.data = block_ + data_at_ + static_cast<uint64_t>(index) * slots_ * kRecordBytes;
    segment.slots = slots_;
    segment.kept = written < slots_ ? written : slots_;
    segment.oldest = written > slots_ && slots_ != 0 ? written % slots_ : 0;
    return segment;
  }

  const unsigned char *block_;
  uint32_t data_at_;
  uint32_t preamble_;
  uint32_t slots_;
  bool is_written_;
  Lanes<uint32_t> written_; ///< records of each segment, lost ones too
};

} // namespace proton::device
