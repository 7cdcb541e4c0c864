// Timelines: the records of each launch are copied to pinned memory on a stream of ours that
// follows the launch, and decoded on a separate thread. Nothing waits for the device, except for
// room in that memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collector/instrumentation/buffers/device_context.h"
#include "collector/instrumentation/decoder/host_decoder.h"
#include "record/record_sink.h"
#include "record/timeline_record.h"

namespace proton {

// Compares a device's nanosecond timer with CLOCK_MONOTONIC. The timer counts roughly unix time: it
// is up to some tenths of a millisecond off, and has its own pace.

/// Facts about a device's timer.
struct DeviceTimerFacts {
  int device = 0;
  TimerOffset newest;    ///< of the newest reading
  uint64_t readings = 0; ///< that were kept
  double drift_ppm = 0;  ///< from the first to the newest; 0: less than readings can tell
  std::string failure;   ///< why there is no reading, or no newer one
};

/// A kernel that notes the timer runs between two readings of the host's clock. For one thread at a
/// time; the context must be current.
class DeviceTimer {
public:
  static constexpr int64_t kBetweenNs = 1'000'000'000;

  explicit DeviceTimer(DeviceContext &context, int64_t between_ns = kBetweenNs)
      : context_(context), between_ns_(between_ns) {}

  /// Reads both clocks, if the last time is long ago. The reading is kept unless an older one is
  /// better: a busy device takes long to run the kernel.
  void observe() noexcept;
  /// The offset at a time of the timer, on the line from the first to the newest reading.
  TimerOffset at(uint64_t timer_ns) const noexcept;
  DeviceTimerFacts facts() const;
  /// Frees its memory. [nothing of ours runs]
  void free() noexcept;

private:
  struct Reading {
    uint64_t timer_ns = 0;
    TimerOffset offset;
  };

  void read();
  /// Bounds from one run of the kernel; empty if it noted nothing.
  std::optional<Reading> read_once();
  bool is_worth_keeping(const Reading &reading) const noexcept;
  double drift() const noexcept;

  DeviceContext &context_;
  const int64_t between_ns_;
  device::ClockAnchor *anchors_ = nullptr; ///< memory of the host
  int64_t tried_ns_ = 0;                   ///< when it was last read; 0: never
  uint64_t readings_ = 0;
  Reading first_;
  Reading newest_;
  std::string failure_;
};

inline constexpr const char *kFailedCopy = "launch whose timeline the device did not copy";

/// How a launch's records and clocks lie in one buffer.
struct TimelineLayout {
  size_t records_bytes = 0;
  uint32_t processors = 0;

  static constexpr size_t kAlignment = 128;
  size_t before_at() const { return (records_bytes + kAlignment - 1) / kAlignment * kAlignment; }
  size_t after_at() const { return before_at() + processors * sizeof(device::ClockAnchor); }
  size_t bytes() const { return after_at() + processors * sizeof(device::ClockAnchor); }
};

struct CopiedLaunch {
  std::shared_ptr<const InstrumentedKernel> kernel;
  Capture at;
  TimelineLayout layout;
  cuda::DevicePointer buffer = 0;
  void *stream = nullptr;
  uint64_t correlation_id = 0; ///< see TimelineRecord
};

struct TimelineCopyFacts {
  uint64_t waits = 0; ///< launches that waited for room
  size_t pinned_bytes = 0;
  double clock_hz = 0;                  ///< of the multiprocessors in the newest launch; 0: unknown
  std::vector<DeviceTimerFacts> timers; ///< of each device of which a launch was decoded
};

class TimelineCopies {
public:
  static constexpr size_t kPinnedBytes = size_t{256} << 20;

  explicit TimelineCopies(RecordSink &sink, size_t pinned_bytes = kPinnedBytes);
  /// Waits for what is queued. Memory was freed by `free_all`, or is lost.
  ~TimelineCopies();

  /// Notes the clocks before or after a launch, on its stream.
  static cuda::Result mark(DeviceContext &context, const CopiedLaunch &launch, size_t at) noexcept;
  /// Queues the copy on the context's copy stream, which follows the launch. Throws
  /// Error(kUnavailable); the timeline is lost then. [context current]
  void copy(DeviceContext &context, const CopiedLaunch &launch);
  /// Returns when everything that was queued before the call is decoded.
  void drain();
  /// Frees the context's pinned memory. [drained, and the context is idle]
  void free_all(DeviceContext &context) noexcept;
  TimelineCopyFacts facts() const;

private:
  /// Pinned memory of several chunks: pinning some takes the driver longer than copying it.
  class Block {
  public:
    Block(DeviceContext &context, size_t bytes);
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;
    ~Block() { context_.free_host(memory_); }
    std::byte *at(size_t offset) const { return memory_ + offset; }

  private:
    DeviceContext &context_;
    std::byte *memory_;
  };
  struct Chunk {
    DeviceContext *context = nullptr; ///< that allocated it
    std::shared_ptr<Block> block;
    std::byte *memory = nullptr;
    size_t bytes = 0;
    void *event = nullptr;
  };
  struct Job {
    DeviceContext *context;
    CopiedLaunch launch;
    std::unique_ptr<Chunk> chunk;
  };
  using Jobs = std::list<Job>; ///< they change lists without a failure

  std::unique_ptr<Chunk> take_chunk(DeviceContext &context, size_t bytes);
  std::unique_ptr<Chunk> find_free(DeviceContext &context, size_t bytes);
  void add_chunks(DeviceContext &context, size_t bytes);
  void free_chunk(Chunk &chunk) noexcept;
  void put_aside(Jobs &job) noexcept;
  void run();
  bool wait_for(const Job &job) noexcept;
  void decode(const Job &job) noexcept;
  /// Compares the timer of the job's device with our clock now and then.
  const DeviceTimer &observed_timer(const Job &job);

  RecordSink &sink_;
  const size_t pinned_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable has_work_;
  std::condition_variable has_room_; ///< also: a job is done
  Jobs jobs_;
  Jobs aside_; ///< failed: the device may write to their memory at any later time
  std::vector<std::unique_ptr<Chunk>> free_;
  size_t taken_bytes_ = 0; ///< of chunks that are neither free nor aside
  uint64_t queued_ = 0;    ///< jobs, ever
  uint64_t done_ = 0;
  bool is_ending_ = false;
  TimelineCopyFacts facts_;
  std::map<const DeviceContext *, DeviceTimer> timers_; ///< the thread alone reads them
  std::thread thread_;                                  ///< last: it uses the others
};

// The timeline of one launch, in true time: cycles of a multiprocessor are placed between the times
// that its clock and the device's nanosecond timer had before and after the launch.

class LaunchTimeline final : public BufferVisitor {
public:
  /// Reads the launch's copied buffer; `kernel` must live longer.
  LaunchTimeline(const InstrumentedKernel &kernel, const TimelineLayout &layout,
                 const std::byte *buffer);

  void decode();
  /// Instead of `decode`: only counts what headers say.
  void leave_out();

  /// Valid while the timeline lives; without place and device.
  TimelineRecord record() const;
  /// Clock of the multiprocessors while the launch ran; 0 if it is not known.
  double clock_hz() const { return clock_hz_; }

  void begin_program(const BlockHeader &header) override;
  void instance(const BlockHeader &header, const ScopeInstance &instance) override;
  void end_program(const BlockHeader &header) override;

private:
  void measure_clock();
  bool is_kept(uint32_t program) const;
  /// Cycles from the program's first time to a clock of one of its records.
  uint64_t cycles_since_init(const BlockHeader &header, uint64_t clock) const;

  const InstrumentedKernel &kernel_;
  std::span<const std::byte> records_;
  uint32_t processors_;
  const device::ClockAnchor *before_;
  const device::ClockAnchor *after_;
  uint64_t clock_mask_;
  double clock_hz_ = 0;
  TimelineRows rows_;
  uint64_t left_out_ = 0;     ///< instances
  uint64_t newest_start_ = 0; ///< clock as the device read it
};

} // namespace proton
