// The bytes that instrumented kernels write: one block per program, little endian.
#pragma once

#include <cstdint>

namespace proton {

inline constexpr uint32_t kBlockPreamble = 0xDEADBEEFu; ///< 0: the program never ran

// Offsets in a block. After the header come the word counts of the warps, one uint32 each, and then
// the segments of the warps that record, by ascending warp.
inline constexpr uint32_t kPreambleAt = 0;
inline constexpr uint32_t kProgramAt = 4;
inline constexpr uint32_t kProcessorAt = 8;
inline constexpr uint32_t kCapacityAt = 12; ///< bytes of all segments
inline constexpr uint32_t kInitAt = 16;     ///< three times of a nanosecond timer
inline constexpr uint32_t kPreFinalAt = 24;
inline constexpr uint32_t kPostFinalAt = 32;
inline constexpr uint32_t kBlockHeaderBytes = 40;

// A record: the tag, then the low bits of the clock.
inline constexpr uint32_t kRecordBytes = 8;
inline constexpr uint32_t kRecordWords = 2;
inline constexpr uint32_t kEndBit = 31;
inline constexpr uint32_t kScopeShift = 23;
inline constexpr uint32_t kScopeMask = 0xff;
inline constexpr uint32_t kAsyncBit = 22;
inline constexpr uint32_t kClockHighMask = 0x7ff;
inline constexpr uint32_t kClockBits = 43;
inline constexpr uint32_t kShortClockBits = 32; ///< with optimizations="clock32"
inline constexpr uint32_t kMaxScopes = 256;

constexpr uint64_t clock_mask(bool has_short_clock) noexcept {
  return (uint64_t{1} << (has_short_clock ? kShortClockBits : kClockBits)) - 1;
}

} // namespace proton
