// Where collectors hand over their records. Every function is noexcept: it may be called from C.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "record/record.h"

namespace proton {

/// Launches that wait for a record.
struct PendingLaunches {
  uint64_t kernels = 0;
  uint64_t newest_id = 0; ///< highest of the ids; 0 without any
};

class GraphSink;
struct CounterBurst;
struct CycleRecord;
struct PcSampleRecord;
struct TimelineRecord;

class RecordSink {
public:
  virtual ~RecordSink() = default;
  /// Notes a launch of the calling thread and returns its epoch; 0 when no session is active, and
  /// its record must not come then. [launching thread, no lock]
  virtual EpochId launched(uint64_t correlation_id) noexcept = 0;
  /// Same for an id of a vendor's library, whose record comes even when no session listens: the
  /// launch is noted in any case, so that its record is known.
  virtual EpochId launched(uint64_t correlation_id, LaunchKind kind, uint32_t code) noexcept = 0;
  /// The launch is the profiler's own: its record is awaited like others, and belongs to no
  /// session.
  virtual void launched_own(uint64_t correlation_id, LaunchKind kind) noexcept = 0;
  /// Same as the first for a launch that was called at a known time. [launching thread, no lock]
  virtual EpochId launched_at(uint64_t correlation_id, int64_t called_ns) noexcept = 0;
  /// The call of the calling thread's launch returned. To be called for each launch that the second
  /// `launched` noted while some session wanted a timeline. [launching thread, no lock]
  virtual void returned(uint64_t) noexcept {}
  /// The calling thread's newest kernel has scopes inside, whose TimelineRecord follows. Returns
  /// the launch's correlation id, once; 0: no other collector noted it. [launching thread, no lock]
  virtual uint64_t scoped() noexcept { return 0; }
  /// The calling thread's launch failed: no record will come. [launching thread, no lock]
  virtual void retracted(uint64_t correlation_id) noexcept = 0;
  /// The launch call failed: no record will come. [any thread]
  virtual void failed(uint64_t correlation_id) noexcept = 0;
  /// Kernels that ran; joined with their launches by correlation id. [any thread] locks
  virtual void complete(std::span<const KernelRecord> kernels) noexcept = 0;
  virtual void complete(std::span<const CopyRecord> copies) noexcept = 0;
  /// What the scopes inside kernels took; it waits for no launch. [any thread] locks
  virtual void complete(const CycleRecord &) noexcept {}
  /// When the scopes inside one launch ran, for sessions that keep a timeline. [any thread] locks
  virtual void complete(const TimelineRecord &) noexcept {}
  /// Whether a session keeps a timeline there that is not full: asked before one is decoded. [any
  /// thread] locks
  virtual bool has_timeline_room(const Capture &) noexcept { return true; }
  /// Samples of a kernel whose launch is known. [any thread] locks
  virtual void complete(const PcSampleRecord &) noexcept {}
  /// Samples of kernels since `begin_samples` or the last such call: they are split over launches
  /// by the time that the device took for them meanwhile. [any thread] locks
  virtual void complete(std::span<const PcSampleRecord>) noexcept {}
  /// From here on that time is counted; `end_samples`: no more. [any thread] locks
  virtual void begin_samples() noexcept {}
  virtual void end_samples() noexcept {}
  /// Hardware counters of a device are sampled from now on: its kernels that end later are kept
  /// beside the samples. One burst of a device is open at a time. [any thread] locks
  virtual void begin_burst(const char *, int32_t, int64_t) noexcept {}
  /// The samples; none: the burst came to nothing. True: a session had as many bursts as it keeps,
  /// and dropped every second one. [any thread] locks
  virtual bool complete(const std::shared_ptr<const CounterBurst> &) noexcept { return false; }
  /// Records of one device come in the order in which its allocator worked. [any thread, whatever
  /// locks the target holds]
  virtual void complete(const MemoryRecord &) noexcept {}
  /// Where threads of the program were seen. [any thread] locks
  virtual void complete(std::span<const HostSample>) noexcept {}
  /// Launches of these ids without a record so far. [any thread] locks
  virtual PendingLaunches pending(uint64_t first_id, uint64_t last_id) noexcept = 0;
  /// What was launched and is still without a record stays so. [any thread] locks
  virtual void settled(const SettledRecord &record) noexcept = 0;
  /// Records were lost. [any thread] locks
  virtual void dropped(const DroppedRecord &record) noexcept = 0;
  /// Where graphs are reported.
  virtual GraphSink &graphs() noexcept = 0;
};

/// A correlation id that no vendor library uses: collectors without ids of their own take these.
uint64_t next_correlation_id() noexcept;

} // namespace proton
