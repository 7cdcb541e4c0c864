#include "collector/instrumentation/decoder/host_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace proton {
namespace {

constexpr uint32_t kMaxWarps = 1024;

class Decoder {
public:
  Decoder(const BufferLayout &layout, BufferVisitor &visitor, KernelTotals &totals)
      : layout_(layout), visitor_(visitor), totals_(totals),
        rules_{clock_mask(layout.has_short_clock), layout.record_cost_cycles}, warp_pairs_(rules_),
        async_pairs_(rules_) {}

  void read(std::span<const std::byte> bytes);

private:
  void read_program(const BlockReader &block);
  void read_segment(const BlockHeader &header, const Segment &segment, uint32_t warp);

  const BufferLayout &layout_;
  BufferVisitor &visitor_;
  KernelTotals &totals_;
  PairingRules rules_;
  WarpPairs warp_pairs_;
  AsyncPairs async_pairs_;
};

void Decoder::read(std::span<const std::byte> bytes) {
  BlockReader block(bytes, layout_);
  switch (block.state()) {
  case BlockState::kSkipped:
    ++totals_.skipped_programs;
    return;
  case BlockState::kCorrupt:
    ++totals_.corrupt_programs;
    return;
  case BlockState::kWritten:
    read_program(block);
    return;
  }
}

void Decoder::read_program(const BlockReader &block) {
  const BlockHeader &header = block.header();
  ++totals_.programs;
  totals_.lossy_programs += header.is_lossy ? 1 : 0;
  visitor_.begin_program(header);
  for (uint32_t index = 0; index < layout_.segments(); ++index) {
    Segment segment = block.segment(index);
    totals_.records += segment.size();
    totals_.lost_records += segment.lost();
    totals_.lossy_warps += segment.lost() != 0 ? 1 : 0;
    read_segment(header, segment, layout_.warp_of(index));
  }
  totals_.unpaired_records += async_pairs_.finish(
      [&](const ScopeInstance &instance) { visitor_.instance(header, instance); });
  visitor_.end_program(header);
}

void Decoder::read_segment(const BlockHeader &header, const Segment &segment, uint32_t warp) {
  warp_pairs_.begin(warp);
  for (uint32_t position = 0; position < segment.size(); ++position) {
    RawRecord record = segment[position];
    if (record.scope >= layout_.scopes)
      ++totals_.unpaired_records;
    else if (record.is_async)
      async_pairs_.add(record, warp, position);
    else if (auto instance = warp_pairs_.add(record, position))
      visitor_.instance(header, *instance);
  }
  totals_.unpaired_records += warp_pairs_.unpaired();
}

std::string warp_fault(const BufferLayout &layout) {
  for (size_t i = 0; i < layout.warp_ids.size(); ++i) {
    uint32_t warp = layout.warp_ids[i];
    if (warp >= layout.warps)
      return "warp " + std::to_string(warp) + " records, but a program has only " +
             std::to_string(layout.warps);
    if (i != 0 && warp <= layout.warp_ids[i - 1])
      return "the warps that record do not ascend";
  }
  return "";
}

} // namespace

std::string BufferLayout::fault() const {
  if (warps == 0 || warps > kMaxWarps)
    return "a program has " + std::to_string(warps) + " warps, not 1 to " +
           std::to_string(kMaxWarps);
  if (scratch_bytes < data_at())
    return "a block of " + std::to_string(scratch_bytes) + " bytes cannot hold the header of " +
           std::to_string(warps) + " warps";
  if (scopes > kMaxScopes)
    return std::to_string(scopes) + " scopes are more than records can name";
  return warp_fault(*this);
}

void decode(std::span<const std::byte> buffer, const BufferLayout &layout, BufferVisitor &visitor,
            KernelTotals &totals) {
  if (!layout.fault().empty())
    return;
  Decoder decoder(layout, visitor, totals);
  size_t block_bytes = layout.scratch_bytes;
  for (; buffer.size() >= block_bytes; buffer = buffer.subspan(block_bytes))
    decoder.read(buffer.first(block_bytes));
  if (!buffer.empty())
    ++totals.corrupt_programs;
}

ScopeTotals empty_scope_totals() noexcept {
  ScopeTotals totals{};
  totals.min_cycles = ~uint64_t{0};
  return totals;
}

void add_instance(ScopeTotals &totals, uint64_t cycles) noexcept {
  ++totals.count;
  totals.cycles += cycles;
  totals.min_cycles = std::min(totals.min_cycles, cycles);
  totals.max_cycles = std::max(totals.max_cycles, cycles);
  ++totals.buckets[cycle_bucket(cycles)];
}

void add_totals(ScopeTotals &totals, const ScopeTotals &other) noexcept {
  totals.count += other.count;
  totals.cycles += other.cycles;
  totals.min_cycles = std::min(totals.min_cycles, other.min_cycles);
  totals.max_cycles = std::max(totals.max_cycles, other.max_cycles);
  for (uint32_t bucket = 0; bucket < kCycleBuckets; ++bucket)
    totals.buckets[bucket] += other.buckets[bucket];
}

void add_totals(KernelTotals &totals, const KernelTotals &other) noexcept {
  totals.launches += other.launches;
  totals.programs += other.programs;
  totals.skipped_programs += other.skipped_programs;
  totals.corrupt_programs += other.corrupt_programs;
  totals.records += other.records;
  totals.lost_records += other.lost_records;
  totals.unpaired_records += other.unpaired_records;
  totals.lossy_programs += other.lossy_programs;
  totals.lossy_warps += other.lossy_warps;
}

void reduce(std::span<const std::byte> buffer, const BufferLayout &layout, KernelTotals &totals,
            std::span<ScopeTotals> scopes) {
  if (!layout.fault().empty() || scopes.size() < layout.scopes)
    return;
  CycleTotals visitor(scopes);
  ++totals.launches;
  decode(buffer, layout, visitor, totals);
}

void TimelineRows::begin_program(const BlockHeader &header) {
  TimelineProgram &program = programs.emplace_back();
  program.program = header.program;
  program.processor = header.processor;
  program.init_ns = header.init_ns;
  program.pre_final_ns = header.pre_final_ns;
  program.post_final_ns = header.post_final_ns;
  program.is_lossy = header.is_lossy;
  program.first = static_cast<uint32_t>(instances.size());
}

void TimelineRows::instance(const BlockHeader &, const ScopeInstance &instance) {
  TimelineScope &scope = instances.emplace_back();
  // Otherwise a scope could seem to begin after the shortened one around it has ended.
  scope.start_cycle = instance.start_clock - instance.shift_cycles;
  scope.cycles = instance.cycles;
  scope.warp = static_cast<uint16_t>(instance.warp);
  scope.end_warp = static_cast<uint16_t>(instance.end_warp);
  scope.scope = static_cast<uint8_t>(instance.scope);
  scope.is_async = instance.is_async;
}

void TimelineRows::end_program(const BlockHeader &) {
  TimelineProgram &program = programs.back();
  program.count = static_cast<uint32_t>(instances.size()) - program.first;
  std::span<TimelineScope> own = std::span(instances).subspan(program.first);
  if (own.empty())
    return;
  // Clocks wrap: from half a turn before any of them they can be compared.
  uint64_t begin = own.front().start_cycle - (clock_mask_ / 2 + 1);
  uint64_t first = std::numeric_limits<uint64_t>::max();
  for (TimelineScope &scope : own) {
    scope.start_cycle = (scope.start_cycle - begin) & clock_mask_;
    first = std::min(first, scope.start_cycle);
  }
  for (TimelineScope &scope : own) {
    scope.start_cycle -= first;
    program.last_cycle = std::max(program.last_cycle, scope.start_cycle + scope.cycles);
  }
}

void TimelineRows::clear() {
  programs.clear();
  instances.clear();
}

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
