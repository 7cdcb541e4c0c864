// Cycles of the scopes inside kernels, as a reduction of their records leaves them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "record/record.h"

namespace proton {

/// Buckets of the histogram of a scope: its error is 3 %, and 43 bits of clock fit exactly.
inline constexpr uint32_t kCycleBuckets = 640;
inline constexpr uint32_t kBucketsPerOctaveLog2 = 4;

/// Below 16 the value itself, above it 16 buckets per octave. Integers only, so that host and
/// device agree bit by bit; what 43 bits cannot hold falls into the last one.
constexpr uint32_t cycle_bucket(uint64_t cycles) noexcept {
  constexpr uint32_t kPerOctave = 1u << kBucketsPerOctaveLog2;
  if (cycles < kPerOctave)
    return static_cast<uint32_t>(cycles);
  uint32_t octave = static_cast<uint32_t>(std::bit_width(cycles)) - 1 - kBucketsPerOctaveLog2;
  uint32_t inside = static_cast<uint32_t>(cycles >> octave) & (kPerOctave - 1);
  uint32_t bucket = (octave + 1) * kPerOctave + inside;
  return bucket < kCycleBuckets ? bucket : kCycleBuckets - 1;
}

/// The smallest value of a bucket.
constexpr uint64_t cycle_bucket_floor(uint32_t bucket) noexcept {
  constexpr uint32_t kPerOctave = 1u << kBucketsPerOctaveLog2;
  if (bucket < kPerOctave)
    return bucket;
  uint32_t octave = bucket / kPerOctave - 1;
  return uint64_t{kPerOctave + bucket % kPerOctave} << octave;
}

/// What the instances of one scope sum up to, in all launches since the totals were cleared.
struct ScopeTotals {
  uint64_t count;      ///< instances: pairs of records
  uint64_t cycles;     ///< sum
  uint64_t min_cycles; ///< all bits set while count is 0
  uint64_t max_cycles;
  uint32_t buckets[kCycleBuckets];
};
static_assert(sizeof(ScopeTotals) == 32 + 4 * kCycleBuckets, "the device writes this layout");

/// The launches of one kernel. On a device it stands before the ScopeTotals of scopes 0, 1, ...
struct KernelTotals {
  uint64_t launches;
  uint64_t programs;         ///< that wrote their header
  uint64_t skipped_programs; ///< that never ran: preamble 0
  uint64_t corrupt_programs; ///< another preamble, or a capacity that is not the buffer's
  uint64_t records;          ///< that were read
  uint64_t lost_records;     ///< that newer ones replaced
  uint64_t unpaired_records; ///< of `records`, without a partner or of an unknown scope
  uint64_t lossy_programs;   ///< with a warp that lost records; its first such warp counts it
  uint64_t lossy_warps;
  uint64_t reserved;
};
static_assert(sizeof(KernelTotals) == 80, "the device writes this layout");

inline constexpr uint32_t kNoScope = 0xffffffffu;

/// A scope of a kernel; its id is its position.
struct CycleScope {
  const char *name = nullptr;
  uint32_t parent = kNoScope; ///< id of the scope around it
};

/// Scopes of a kernel that was launched at one place. Pointers are valid only while it is handed
/// over.
struct CycleRecord {
  Capture at;
  const char *kernel = nullptr;
  const VariantRecord *variant = nullptr;
  const char *device_kind = "CUDA";
  int32_t device_index = 0;
  uint32_t warps = 0;                 ///< of a program that record
  std::span<const CycleScope> scopes; ///< as many as `scope_totals` has
  const KernelTotals *totals = nullptr;
  const ScopeTotals *scope_totals = nullptr;
};

} // namespace proton
