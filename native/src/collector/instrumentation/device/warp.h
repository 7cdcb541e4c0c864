// A warp of 32 threads for code that is compiled twice: by nvcc for the device, and for the host,
// where one thread plays the lanes in turn so that tests run what the device runs.
//
// Code between two collective functions stands in for_lanes, which runs it once per lane; values
// that live longer are Lanes. On the device both cost nothing.
#pragma once

#include <cstdint>

#include "collector/instrumentation/device/reduce_task.h"
#ifndef __CUDACC__
#include <array>
#include <bit>
#endif

#ifdef __CUDACC__
#define PB_DEVICE __device__ __forceinline__
#else
#define PB_DEVICE inline
#endif

namespace proton::device {

inline constexpr uint32_t kAllLanes = 0xffffffffu;

#ifdef __CUDACC__

template <typename T> struct Lanes {
  T value;
  PB_DEVICE T &operator[](uint32_t) { return value; }
  PB_DEVICE const T &operator[](uint32_t) const { return value; }
};

template <typename Body> PB_DEVICE void for_lanes(Body &&body) { body(threadIdx.x % kLanes); }

PB_DEVICE uint32_t ballot(const Lanes<bool> &lanes) {
  return __ballot_sync(kAllLanes, lanes.value);
}
/// For each lane the lanes that hold its value.
PB_DEVICE Lanes<uint32_t> match(const Lanes<uint32_t> &lanes) {
  return {__match_any_sync(kAllLanes, lanes.value)};
}
template <typename T>
PB_DEVICE Lanes<T> shuffle(const Lanes<T> &lanes, const Lanes<uint32_t> &from) {
  return {__shfl_sync(kAllLanes, lanes.value, static_cast<int>(from.value))};
}
template <typename T> PB_DEVICE T broadcast(const Lanes<T> &lanes, uint32_t from) {
  return __shfl_sync(kAllLanes, lanes.value, static_cast<int>(from));
}
PB_DEVICE uint32_t sum(const Lanes<uint32_t> &lanes) {
  return __reduce_add_sync(kAllLanes, lanes.value);
}
PB_DEVICE uint32_t smallest(const Lanes<uint32_t> &lanes) {
  return __reduce_min_sync(kAllLanes, lanes.value);
}
/// Makes what lanes wrote to shared memory visible to the others.
PB_DEVICE void sync_warp() { __syncwarp(); }
PB_DEVICE uint32_t lowest_bit(uint32_t bits) {
  return static_cast<uint32_t>(__ffs(static_cast<int>(bits))) - 1;
}
PB_DEVICE uint32_t count_bits(uint32_t bits) { return static_cast<uint32_t>(__popc(bits)); }
/// Position of the highest bit; `bits` is not 0.
PB_DEVICE uint32_t highest_bit(uint32_t bits) {
  return 31u - static_cast<uint32_t>(__clz(static_cast<int>(bits)));
}
PB_DEVICE uint32_t highest_bit(uint64_t bits) {
  return 63u - static_cast<uint32_t>(__clzll(static_cast<long long>(bits)));
}

using Word = unsigned long long; // what the 64-bit atomics take
static_assert(sizeof(Word) == sizeof(uint64_t));
PB_DEVICE void atomic_add(uint64_t *to, uint64_t value) {
  atomicAdd(reinterpret_cast<Word *>(to), value);
}
PB_DEVICE void atomic_add(uint32_t *to, uint32_t value) { atomicAdd(to, value); }
PB_DEVICE void atomic_max(uint64_t *to, uint64_t value) {
  atomicMax(reinterpret_cast<Word *>(to), value);
}
PB_DEVICE uint64_t exchange(uint64_t *to, uint64_t value) {
  return atomicExch(reinterpret_cast<Word *>(to), value);
}

#else

template <typename T> struct Lanes {
  std::array<T, kLanes> values;
  T &operator[](uint32_t lane) { return values[lane]; }
  const T &operator[](uint32_t lane) const { return values[lane]; }
};

template <typename Body> void for_lanes(Body &&body) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    body(lane);
}

inline uint32_t ballot(const Lanes<bool> &lanes) {
  uint32_t bits = 0;
  for_lanes([&](uint32_t lane) { bits |= uint32_t{lanes[lane]} << lane; });
  return bits;
}
inline Lanes<uint32_t> match(const Lanes<uint32_t> &lanes) {
  Lanes<uint32_t> peers{};
  for_lanes([&](uint32_t lane) {
    for_lanes(
        [&](uint32_t other) { peers[lane] |= uint32_t{lanes[lane] == lanes[other]} << other; });
  });
  return peers;
}
template <typename T> Lanes<T> shuffle(const Lanes<T> &lanes, const Lanes<uint32_t> &from) {
  Lanes<T> result{};
  for_lanes([&](uint32_t lane) { result[lane] = lanes[from[lane] % kLanes]; });
  return result;
}
template <typename T> T broadcast(const Lanes<T> &lanes, uint32_t from) {
  return lanes[from % kLanes];
}
inline uint32_t sum(const Lanes<uint32_t> &lanes) {
  uint32_t all = 0;
  for_lanes([&](uint32_t lane) { all += lanes[lane]; });
  return all;
}
inline uint32_t smallest(const Lanes<uint32_t> &lanes) {
  uint32_t least = lanes[0];
  for_lanes([&](uint32_t lane) { least = lanes[lane] < least ? lanes[lane] : least; });
  return least;
}
inline void sync_warp() {}
inline uint32_t lowest_bit(uint32_t bits) { return static_cast<uint32_t>(std::countr_zero(bits)); }
inline uint32_t count_bits(uint32_t bits) { return static_cast<uint32_t>(std::popcount(bits)); }
inline uint32_t highest_bit(uint32_t bits) {
  return static_cast<uint32_t>(std::bit_width(bits)) - 1;
}
inline uint32_t highest_bit(uint64_t bits) {
  return static_cast<uint32_t>(std::bit_width(bits)) - 1;
}

inline void atomic_add(uint64_t *to, uint64_t value) {
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
inline void atomic_add(uint32_t *to, uint32_t value) {
  __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
inline void atomic_max(uint64_t *to, uint64_t value) {
  uint64_t seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (seen < value &&
         !__atomic_compare_exchange_n(to, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
inline uint64_t exchange(uint64_t *to, uint64_t value) {
  return __atomic_exchange_n(to, value, __ATOMIC_RELAXED);
}

#endif

} // namespace proton::device
