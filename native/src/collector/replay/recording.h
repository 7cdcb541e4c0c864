// A recorded stream of records: what a collector saw, in order, in one flat file.
//
// File: "PBRECORD", u32 version, u32 number of strings, u64 number of events, then the strings
// (u32 length, bytes) and the events (fixed size, little endian, strings by index).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace proton {

inline constexpr uint32_t kRecordingVersion = 1;
inline constexpr uint32_t kNoText = 0xffffffffu;

enum class RecordedKind : uint32_t {
  kScopeEnter = 1, ///< name
  kScopeExit = 2,
  kLaunch = 3,  ///< correlation_id, start_ns (of the call; 0: unknown)
  kKernel = 4,  ///< everything
  kFailed = 5,  ///< correlation_id
  kDropped = 6, ///< name (reason), count
};

/// One event; strings are indexes, or kNoText.
struct RecordedEvent {
  RecordedKind kind = RecordedKind::kLaunch;
  uint32_t name = kNoText;
  uint32_t device_kind = kNoText;
  int32_t device_index = 0;
  uint32_t stream = 0;
  uint32_t shared_bytes = 0;
  uint32_t signature = kNoText;
  uint32_t has_variant = 0;
  uint64_t correlation_id = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t count = 0;
  uint64_t code_hash = 0;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
};
static_assert(sizeof(RecordedEvent) == 96);

struct Recording {
  std::vector<std::string> strings;
  std::vector<RecordedEvent> events;

  /// The text at an index; null for kNoText.
  const char *text(uint32_t index) const {
    return index == kNoText ? nullptr : strings[index].c_str();
  }
};

/// Throws Error(kFormat) naming the file and what is wrong with it.
Recording read_recording(const std::string &path);
/// Bytes of the file.
std::string encode_recording(const Recording &recording);

} // namespace proton
