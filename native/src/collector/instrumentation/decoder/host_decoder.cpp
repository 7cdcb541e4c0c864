#include "collector/instrumentation/decoder/host_decoder.h"

#include <algorithm>

#include "collector/instrumentation/decoder/block_reader.h"
#include "collector/instrumentation/decoder/scope_pairs.h"

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

} // namespace proton
