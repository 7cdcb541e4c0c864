// Timelines: the records of each launch are copied to pinned memory on a stream of ours that
// follows the launch, and decoded on a separate thread. Nothing waits for the device, except for
// room in that memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "collector/instrumentation/buffers/device_context.h"
#include "collector/instrumentation/timeline/device_timer.h"
#include "record/record_sink.h"

namespace proton {

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

} // namespace proton
