#include "collector/instrumentation/decoder/cycle_totals.h"

#include <algorithm>

namespace proton {

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

} // namespace proton
