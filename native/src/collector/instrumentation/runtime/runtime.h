// The collector of scopes inside kernels: gives each launch a buffer, has the device reduce it
// after the launch, and delivers the totals at a flush.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/collector.h"
#include "collector/instrumentation/runtime/launch_places.h"
#include "collector/instrumentation/timeline/timeline_copies.h"
#include "record/record_sink.h"

namespace proton {

// Launches of the calling thread between the moment Triton asked for a buffer and the end of the
// launch call. They nest: a launch's metadata may launch kernels of its own.

struct OpenLaunch {
  uint64_t owner = 0; ///< of the runtime that gave the buffer
  ScratchPool *pool = nullptr;
  ScratchBuffer *buffer = nullptr;
  size_t bytes = 0;
  void *stream = nullptr;
  uint64_t capture_id = 0;
  uint64_t correlation_id = 0; ///< as in TimelineRecord
};

/// A launch that failed stays, because Triton does not report it; it is dropped when an older
/// launch ends, or when there are too many.
class OpenLaunches {
public:
  static constexpr uint32_t kMost = 8;

  static OpenLaunches &of_thread() noexcept;

  uint32_t size() const { return size_; }
  const OpenLaunch &oldest() const { return launches_[0]; }
  const OpenLaunch &newest() const { return launches_[size_ - 1]; }
  bool is_full() const { return size_ == kMost; }
  void push(const OpenLaunch &launch) { launches_[size_++] = launch; }
  void drop_newest() { --size_; }
  void drop_oldest() {
    for (uint32_t i = 1; i < size_; ++i)
      launches_[i - 1] = launches_[i];
    --size_;
  }
  /// Position of the newest launch on the stream whose buffer is this many whole blocks, or kMost.
  uint32_t find(uint64_t owner, const void *stream, size_t block_bytes) const {
    for (uint32_t i = size_; i-- > 0;) {
      const OpenLaunch &launch = launches_[i];
      if (launch.owner == owner && launch.stream == stream && launch.bytes % block_bytes == 0)
        return i;
    }
    return kMost;
  }

private:
  std::array<OpenLaunch, kMost> launches_{};
  uint32_t size_ = 0;
};

struct InstrumentationOptions {
  size_t byte_limit = size_t{1} << 30; ///< of one launch
  /// Bytes that the compiler's code can address: Triton before 3.7 multiplies in 32 bits.
  size_t addressable_bytes = ~size_t{0};
  bool timeline = false;
};

struct InstrumentationFacts {
  uint64_t launches = 0;  ///< whose records were reduced or copied
  uint64_t failed = 0;    ///< whose records were lost: the driver refused
  uint64_t abandoned = 0; ///< that never ended: they failed
  size_t device_bytes = 0;
  size_t graph_bytes = 0; ///< the part kept for graphs that may be launched again
  TimelineCopyFacts timeline;
};

class InstrumentationRuntime final : public Collector {
public:
  InstrumentationRuntime(RecordSink &sink, InstrumentationOptions options);
  ~InstrumentationRuntime() override;

  void start() override;
  void flush() override;
  void stop() override;

  /// Describes a loaded function, replacing an earlier description. [any thread]
  void add_kernel(uint64_t function, std::shared_ptr<const InstrumentedKernel> kernel);
  /// Notes a loaded function whose launches ask for no buffer. [any thread]
  void add_plain(uint64_t function) { add_kernel(function, nullptr); }
  void remove_kernel(uint64_t function);
  InstrumentationFacts facts() const;
  /// Waits for the stream, and returns the totals of a private kernel's launches in it, if there
  /// were any. Throws Error(kUnavailable). [launching thread]
  std::optional<HarvestedTotals> take(uint64_t function, void *stream);
  /// Whether the stream is captured into a graph. [launching thread]
  bool is_capturing(void *stream);

  /// Memory for the records of the next launch of the calling thread. Throws Error(kUsage) if it
  /// exceeds the limit, and Error(kUnavailable). [launching thread]
  cuda::DevicePointer allocate(size_t bytes, void *stream);
  /// Waits for the stream, and returns what the calling thread's newest launch has written so far;
  /// nothing without such a launch, or under capture. Throws Error(kUnavailable).
  std::optional<std::vector<std::byte>> read_open(void *stream);
  /// The launch call of the function returned. [launching thread, noexcept]
  void launched(uint64_t function, void *stream) noexcept;
  /// Whether the calling thread has a launch that may end.
  static bool has_open_launch() noexcept { return OpenLaunches::of_thread().size() != 0; }

private:
  using Kernel = std::shared_ptr<const InstrumentedKernel>;
  /// A launch that ended before another thread described its function.
  struct EarlyLaunch {
    uint64_t function = 0;
    OpenLaunch launch;
    Capture at;
  };

  void check_size(size_t bytes) const;
  void abandon(const OpenLaunch &launch) noexcept;
  TimelineLayout layout_of(const DeviceContext &device, size_t bytes) const;
  void keep_early(uint64_t function, const void *stream, const Capture &at) noexcept;
  void finish_early(uint64_t function, const Kernel &kernel) noexcept;
  void abandon_early() noexcept;
  void end(const OpenLaunch &launch, const Kernel &kernel, const Capture &at) noexcept;
  void finish(const OpenLaunch &launch, const Kernel &kernel, const Capture &at);
  void reduce(const OpenLaunch &launch, const Kernel &kernel, const Capture &at, void *stream);
  void lose(const char *reason, uint64_t count) noexcept;
  bool synchronize(ContextPlaces &context) noexcept;
  void deliver() noexcept;
  std::vector<HarvestedTotals> harvest(ContextPlaces &context) noexcept;
  void emit(const HarvestedTotals &harvested, int device) noexcept;
  void release() noexcept;

  RecordSink &sink_;
  const InstrumentationOptions options_;
  const uint64_t serial_; ///< marks its launches

  std::mutex flush_mutex_;   ///< one flush at a time; before `mutex_`
  mutable std::mutex mutex_; ///< of all that follows
  std::unique_ptr<CudaDriver> work_;
  std::unique_ptr<LaunchPlaces> places_;
  std::unique_ptr<TimelineCopies> copies_;       ///< for timelines
  std::unordered_map<uint64_t, Kernel> kernels_; ///< by function; null: without records
  std::vector<EarlyLaunch> early_;
  bool is_running_ = false;
  EpochId flushed_epoch_ = 0;
  InstrumentationFacts facts_;
};

} // namespace proton
