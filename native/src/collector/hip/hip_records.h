// The completing side of the collectors of AMD GPUs: records in one form, handed to the sink.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "collector/gpu/devices/clock_pairs.h"
#include "collector/gpu/devices/device_facts.h"
#include "collector/gpu/launches/correlation_ids.h"
#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/records/record_batch.h"
#include "collector/gpu/work/kernel_table.h"
#include "collector/hip/dispatch_tag.h"
#include "collector/hip/graph_replays.h"

namespace proton {

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

} // namespace proton
