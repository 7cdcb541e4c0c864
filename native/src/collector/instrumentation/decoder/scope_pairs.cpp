#include "collector/instrumentation/decoder/scope_pairs.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace proton {
namespace {

static_assert(std::endian::native == std::endian::little, "devices write little endian");

template <typename Number> Number load(const std::byte *from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

} // namespace

Segment::Segment(std::span<const std::byte> bytes, uint32_t words_written, uint64_t clock_mask)
    : bytes_(bytes.data()), slots_(static_cast<uint32_t>(bytes.size() / kRecordBytes)),
      clock_mask_(clock_mask) {
  uint32_t written = words_written / kRecordWords;
  kept_ = std::min(written, slots_);
  lost_ = written - kept_;
  oldest_ = lost_ == 0 ? 0 : written % std::max(slots_, 1u);
}

RawRecord Segment::operator[](uint32_t position) const {
  uint32_t slot = oldest_ + position; // both are below 2^29
  if (slot >= slots_)
    slot -= slots_;
  const std::byte *at = bytes_ + size_t{slot} * kRecordBytes;
  auto tag = load<uint32_t>(at);
  RawRecord record;
  record.clock = (uint64_t{tag & kClockHighMask} << 32 | load<uint32_t>(at + 4)) & clock_mask_;
  record.scope = tag >> kScopeShift & kScopeMask;
  record.is_end = (tag >> kEndBit & 1) != 0;
  record.is_async = (tag >> kAsyncBit & 1) != 0;
  return record;
}

BlockReader::BlockReader(std::span<const std::byte> block, const BufferLayout &layout)
    : block_(block), layout_(layout) {
  const std::byte *bytes = block.data();
  auto preamble = load<uint32_t>(bytes + kPreambleAt);
  if (preamble != kBlockPreamble) {
    state_ = preamble == 0 ? BlockState::kSkipped : BlockState::kCorrupt;
    return;
  }
  header_.program = load<uint32_t>(bytes + kProgramAt);
  header_.processor = load<uint32_t>(bytes + kProcessorAt);
  header_.init_ns = load<uint64_t>(bytes + kInitAt);
  header_.pre_final_ns = load<uint64_t>(bytes + kPreFinalAt);
  header_.post_final_ns = load<uint64_t>(bytes + kPostFinalAt);
  auto capacity = load<uint32_t>(bytes + kCapacityAt);
  uint32_t grain = layout.segments() * kRecordBytes;
  if (capacity > layout.scratch_bytes - layout.data_at() || capacity % grain != 0)
    return;
  segment_bytes_ = capacity / layout.segments();
  state_ = BlockState::kWritten;
  for (uint32_t index = 0; index < layout.segments() && !header_.is_lossy; ++index)
    header_.is_lossy = segment(index).lost() != 0;
}

Segment BlockReader::segment(uint32_t index) const {
  size_t words_at = kBlockHeaderBytes + size_t{4} * layout_.warp_of(index);
  size_t at = layout_.data_at() + size_t{index} * segment_bytes_;
  return Segment(block_.subspan(at, segment_bytes_), load<uint32_t>(block_.data() + words_at),
                 clock_mask(layout_.has_short_clock));
}

void WarpPairs::begin(uint32_t warp) {
  warp_ = warp;
  unpaired_ = 0;
  open_count_ = 0;
  starts_.fill({});
}

std::optional<ScopeInstance> WarpPairs::add(const RawRecord &record, uint32_t position) {
  Start &start = starts_[record.scope];
  if (!record.is_end) {
    unpaired_ += start.is_open ? 1 : 0;
    open_count_ += start.is_open ? 0 : 1;
    start = {true, position, record.clock};
    return std::nullopt;
  }
  if (!start.is_open) {
    ++unpaired_;
    return std::nullopt;
  }
  start.is_open = false;
  --open_count_;
  ScopeInstance instance;
  instance.scope = record.scope;
  instance.warp = warp_;
  instance.end_warp = warp_;
  instance.start_clock = start.clock;
  instance.end_clock = record.clock;
  instance.cycles = rules_.cycles(start.clock, record.clock, position - start.position);
  instance.shift_cycles = rules_.cost(start.position);
  return instance;
}

void AsyncPairs::sort() {
  if (entries_.empty())
    return;
  // Clocks wrap: half a turn before any of them is a safe place to begin.
  uint64_t begin = entries_.front().record.clock - (rules_.clock_mask / 2 + 1);
  std::stable_sort(entries_.begin(), entries_.end(), [&](const Entry &left, const Entry &right) {
    return ((left.record.clock - begin) & rules_.clock_mask) <
           ((right.record.clock - begin) & rules_.clock_mask);
  });
}

std::optional<ScopeInstance> AsyncPairs::pair(const Entry &entry, uint64_t &unpaired) {
  auto own = std::find_if(open_.begin(), open_.end(), [&](const Entry &start) {
    return start.record.scope == entry.record.scope && start.warp == entry.warp;
  });
  if (!entry.record.is_end) {
    if (own == open_.end())
      open_.push_back(entry);
    else
      ++unpaired;
    return std::nullopt;
  }
  if (own == open_.end())
    own = std::find_if(open_.begin(), open_.end(), [&](const Entry &start) {
      return start.record.scope == entry.record.scope;
    });
  if (own == open_.end()) {
    ++unpaired;
    return std::nullopt;
  }
  ScopeInstance instance;
  instance.scope = entry.record.scope;
  instance.warp = own->warp;
  instance.end_warp = entry.warp;
  instance.is_async = true;
  instance.start_clock = own->record.clock;
  instance.end_clock = entry.record.clock;
  instance.cycles = rules_.cycles(own->record.clock, entry.record.clock, 1);
  instance.shift_cycles = rules_.cost(own->position);
  open_.erase(own);
  return instance;
}

} // namespace proton
