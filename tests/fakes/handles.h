// Handles of the double: what a program holds of contexts, streams and graphs.
#pragma once

#include <cstdint>

namespace fake {

enum HandleKind : uint64_t {
  kContextHandle = 1,
  kStreamHandle = 2,
  kGraphHandle = 3,
  kExecHandle = 4,
  kNodeHandle = 5,
};
/// Handles carry their id, so that asking for the id needs no table.
inline void *handle(HandleKind kind, uint64_t id) {
  return reinterpret_cast<void *>((kind << 44) | (id << 4));
}
inline uint64_t id_of(const void *handle) {
  return (reinterpret_cast<uint64_t>(handle) & ((1ULL << 44) - 1)) >> 4;
}
/// Ids of nodes: the graph's in the upper half, the node's number within it in the lower.
inline void *node_handle(uint64_t id) {
  return handle(kNodeHandle, (id >> 32) << 16 | (id & 0xffff));
}
inline uint64_t node_id_of(const void *handle) {
  const uint64_t packed = id_of(handle);
  return (packed >> 16) << 32 | (packed & 0xffff);
}
inline bool is_handle(HandleKind kind, const void *value) {
  return (reinterpret_cast<uint64_t>(value) >> 44) == kind;
}

} // namespace fake
