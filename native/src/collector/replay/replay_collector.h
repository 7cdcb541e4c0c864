// Feeds a recorded stream to the sink: end-to-end runs without a GPU, and bug reports.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "collector/collector.h"
#include "record/record_sink.h"

namespace proton {

// A recorded stream of records: what a collector saw, in order, in one flat file.
//
// File: "PBRECORD", u32 version, u32 number of strings, u64 number of events, then the strings
// (u32 length, bytes) and the events (fixed size, little endian, strings by index).

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

/// Without `manual`, each flush after a start replays the whole stream with its scopes. With
/// `manual`, `launch` takes the next launches under the caller's own scopes, and their device
/// records come at the next flush, from another thread, as from a vendor library.
class ReplayCollector : public Collector {
public:
  /// Throws Error(kFormat) when the file is not a recording.
  ReplayCollector(RecordSink &sink, const std::string &path, bool manual);
  ~ReplayCollector() override;
  ReplayCollector(const ReplayCollector &) = delete;
  ReplayCollector &operator=(const ReplayCollector &) = delete;

  void start() override;
  void flush() override;
  void stop() override;

  /// Replays up to `count` launches; returns how many. [launching thread]
  uint32_t launch(uint32_t count);
  /// Launches not replayed since the last start.
  size_t remaining();

private:
  struct PendingKernel {
    size_t event;
    uint64_t correlation_id;
  };

  void play_all();
  void deliver(const std::vector<PendingKernel> &kernels) const;
  void finish_launch(size_t launch, uint64_t correlation_id);

  RecordSink &sink_;
  Recording recording_;
  bool manual_;
  std::mutex mutex_; ///< guards what follows; the sink is called without it
  bool started_ = false;
  bool played_ = false;
  size_t next_ = 0; ///< event at which the next launch is looked for
  std::vector<PendingKernel> pending_;
};

} // namespace proton
