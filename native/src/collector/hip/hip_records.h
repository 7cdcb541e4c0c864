// The completing side of the collectors of AMD GPUs: records in one form, handed to the sink.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "collector/gpu/devices/clock_pairs.h"
#include "collector/gpu/devices/device_facts.h"
#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/records/delivery.h"
#include "collector/gpu/work/kernel_table.h"
#include "collector/hip/graph_replays.h"

namespace proton {

// What a dispatch carries through AMD's library to its record.

/// Taken on the launching thread while the dispatch is made; 64 bits, and 0 is not a tag.
struct DispatchTag {
  uint32_t correlation = 0; ///< low half of the launch's id
  bool is_graph = false;
  uint32_t number = 0; ///< ordinal of the dispatch in the launch of a graph; else of the stream

  uint64_t pack() const noexcept {
    return uint64_t{is_graph} << 63 | uint64_t{number & kMostNumber} << 32 | correlation;
  }
  static DispatchTag unpack(uint64_t packed) noexcept {
    return {static_cast<uint32_t>(packed), packed >> 63 != 0,
            static_cast<uint32_t>(packed >> 32) & kMostNumber};
  }

private:
  static constexpr uint32_t kMostNumber = 0x7fffffff;
};

/// A kernel that ran, as a vendor's record says.
struct HipDispatch {
  uint64_t correlation = 0;           ///< the library's own
  uint64_t tag = 0;                   ///< DispatchTag of its launch; 0: none
  const char *name = nullptr;         ///< may end in ".kd"; null: its code is not known
  uint32_t work_items[3] = {0, 0, 0}; ///< 0 where the record does not say
  uint32_t block[3] = {0, 0, 0};
  uint32_t shared_bytes = 0;
  uint32_t registers = 0;
  int device = -1;
  uint32_t queue = 0;
  uint64_t order = 0; ///< ascends with the dispatches
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

struct HipCopy {
  uint64_t correlation = 0;
  uint64_t tag = 0;
  const char *name = nullptr; ///< e.g. "<memcpy H2D>"
  uint64_t bytes = 0;
  int device = -1;
  uint32_t queue = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

class HipRecords {
public:
  struct Parts {
    RecordSink &sink;
    const CorrelationIds &ids;
    LaunchLog &launches;
    GraphReplays &replays;
    /// Whether every dispatch of a launch that was noted has a tag.
    bool has_tags;
  };
  explicit HipRecords(const Parts &parts) : parts_(parts) {}

  /// Records come between sessions too, so the clock changes between two buffers. [any thread]
  void start_clock(ClockPairs::Read read_clock, const void *library);
  void end_clock();
  int64_t clock_drift_ns() const noexcept { return clock_.drift_ns(); }
  DeviceFacts &devices() { return devices_; }
  void set_copies(bool copies) { copies_.store(copies, std::memory_order_relaxed); }
  bool has_copies() const noexcept { return copies_.load(std::memory_order_relaxed); }

  /// Reads one buffer: `read(batch)` calls `add` for each of its records. [any thread] locks
  template <typename Read> void read(Read &&read_all) noexcept {
    try {
      std::lock_guard lock(reading_);
      begin();
      RecordBatch batch(parts_.sink);
      read_all(batch);
      end(batch);
    } catch (...) { // no memory, or a mutex that cannot be locked
      parts_.sink.dropped({"no memory for records of a buffer", 1, true});
    }
  }
  void add(const HipDispatch &dispatch, RecordBatch &batch);
  void add(const HipCopy &copy, RecordBatch &batch);

  /// Records that the library said it dropped.
  void count_dropped(uint64_t records) noexcept;
  uint64_t dropped() const noexcept { return dropped_.load(); }
  /// Records dropped since the last call.
  uint64_t take_dropped() noexcept { return dropped_.exchange(0); }

private:
  struct Launched {
    uint64_t id;
    DispatchTag tag;
    HipDispatch dispatch;
  };
  void begin() noexcept;
  void end(RecordBatch &batch);
  void add_of_graphs(RecordBatch &batch);
  void add_kernel(const Launched &launched, uint32_t stream, uint64_t node, RecordBatch &batch);
  void add_blit(const Launched &launched, uint32_t stream, uint64_t node, RecordBatch &batch);
  uint64_t id_of(uint64_t correlation, uint64_t tag) const noexcept;
  template <typename Record>
  void set_times(Record &to, uint64_t start_ns, uint64_t end_ns) const noexcept;

  Parts parts_;
  std::mutex reading_; ///< one buffer at a time; taken before the sink's locks
  ClockPairs clock_;
  DeviceFacts devices_;
  KernelTable kernels_;
  std::vector<Launched> of_graphs_; ///< of the buffer that is read
  std::atomic<bool> copies_{false};
  std::atomic<uint64_t> dropped_{0};
};

// What distinguishes kernels of one graph: records of AMD's libraries do not name the node.

/// Name in the upper half, shape in the lower; 0 for a null name. Names may end in ".kd".
uint64_t kernel_key(const char *name, const uint32_t (&work_items)[3],
                    const uint32_t (&block)[3]) noexcept;
inline uint32_t name_of_key(uint64_t key) noexcept { return static_cast<uint32_t>(key >> 32); }

/// Length of a kernel's name without the ".kd" of its descriptor.
uint32_t plain_length(const char *name) noexcept;

// Small numbers for streams, which HIP knows by addresses.

/// The null stream is 0; others are numbered from 1 as they are first seen. [any thread] locks
class StreamNumbers {
public:
  uint32_t find(const void *stream) noexcept;

private:
  std::mutex mutex_;
  std::unordered_map<const void *, uint32_t> numbers_;
};

} // namespace proton
