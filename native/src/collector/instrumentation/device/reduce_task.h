// Arguments of the kernels of device/reduce_records.cu: plain data, the same for host and device.
#pragma once

#include <cstdint>

namespace proton::device {

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kMaxRanges = 8;
inline constexpr uint32_t kMaxWarps = 32; ///< of a program: 1024 threads

/// The buffer of one launch and where its totals go. Totals on the device are a KernelTotals and
/// the ScopeTotals of every scope, with one difference: min_cycles is the complement, so that
/// cleared memory is an empty total.
struct ReduceTask {
  unsigned char *buffer;
  unsigned char *totals;
  uint32_t programs;
  uint32_t scratch_bytes; ///< of one program's block
  uint32_t warps;         ///< of a program
  uint32_t segments;      ///< warps that record
  uint32_t scopes;
  uint32_t record_cost; ///< as in BufferLayout
  uint32_t clock_bits;
  uint32_t local_buckets; ///< 1: histograms fit into the shared memory of a block
  uint32_t ranges;        ///< of programs that count; 0: all do
  uint32_t reserved;
  uint32_t first[kMaxRanges];
  uint32_t last[kMaxRanges];   ///< included
  uint8_t warp_ids[kMaxWarps]; ///< of the segments
};

/// Totals to take over and clear, word by word, while reductions may still add to them.
struct HarvestTask {
  uint64_t *totals;
  uint64_t *to;
  uint64_t words;
};

/// Where a multiprocessor's clock stood at a time; one entry per multiprocessor.
struct ClockAnchor {
  uint64_t cycles; ///< 0: nothing was written
  uint64_t ns;     ///< of the device's nanosecond timer
};

struct AnchorTask {
  ClockAnchor *anchors;
  uint32_t processors;
  uint32_t reserved;
};

// Shared memory of a block of the reduction.
inline constexpr uint32_t kCounters = 8;
inline constexpr uint32_t kStatsBytes = 40; ///< of a scope and warp: its sums and its open start
inline constexpr uint32_t kSharedLimit = 48 * 1024;

/// How a reduction is launched.
struct ReduceShape {
  uint32_t warps;
  uint32_t blocks;
  uint32_t shared_bytes;
  uint32_t local_buckets;
};

constexpr ReduceShape reduce_shape(uint32_t scopes, uint32_t segments, uint32_t programs,
                                   uint32_t processors, uint32_t bucket_bytes) noexcept {
  ReduceShape shape{8, 1, 0, 1};
  auto shared = [&] {
    return kCounters * 8 +
           scopes * (kStatsBytes * shape.warps + shape.local_buckets * bucket_bytes);
  };
  if (shared() > kSharedLimit)
    shape.local_buckets = 0;
  if (shared() > kSharedLimit)
    shape.warps = 4;
  shape.shared_bytes = shared();
  uint32_t per_tile = segments < shape.warps ? shape.warps / segments : 1;
  uint32_t tiles = (programs + per_tile - 1) / per_tile;
  uint32_t most = 2 * processors;
  shape.blocks = tiles < most ? tiles : most;
  shape.blocks = shape.blocks == 0 ? 1 : shape.blocks;
  return shape;
}

} // namespace proton::device
