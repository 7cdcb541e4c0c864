// The completing side: buffers that CUPTI filled, read and handed to the sink.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "collector/cupti/callbacks/callbacks.h"
#include "collector/gpu/devices/clock_pairs.h"
#include "collector/gpu/devices/device_facts.h"
#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/records/delivery.h"
#include "collector/gpu/work/kernel_table.h"
#include "driver/cupti/cupti_library.h"
#include "record/record_sink.h"

namespace proton {

// Turns activity records of CUPTI into ours; one reader per kind of record.

// Turns the times of activity records into CLOCK_MONOTONIC.

/// If the library can ask for the host's time, its times are ours already. Otherwise pairs of both
/// clocks are noted now and then, and times between two of them are interpolated.
class Timebase {
public:
  /// Begins in one of the two ways. Call before activities are enabled.
  void start(const CuptiLibrary &library, bool vendor_clock);
  /// As ActivityStream::share.
  void share(void *subscriber) { shared_ = subscriber; }
  /// Restores the library's own clock for its next user.
  void stop(const CuptiLibrary &library) noexcept;
  bool converts() const { return converts_; }

  /// How much the library's clock gained on CLOCK_MONOTONIC since `start`, until the newest pair or
  /// `stop`. [any thread]
  int64_t drift_ns() const noexcept { return pairs_.drift_ns(); }

  /// Notes a pair if the last one is old. [completing thread, one at a time]
  void observe() noexcept {
    if (converts_)
      pairs_.observe();
  }
  int64_t monotonic(uint64_t vendor_ns) const noexcept {
    auto time_ns = static_cast<int64_t>(vendor_ns);
    return converts_ ? pairs_.monotonic(time_ns) : time_ns;
  }

private:
  static bool read_clock(const void *timebase, uint64_t &time_ns) noexcept;

  const CuptiLibrary *library_ = nullptr;
  void *shared_ = nullptr;
  bool converts_ = true;
  ClockPairs pairs_;
};

/// What readers need to know besides the record.
struct ReadingContext {
  const CorrelationIds &ids;
  const LaunchLog &launches;
  const Timebase &timebase;
  DeviceFacts &devices;
};

class RecordReader {
public:
  virtual ~RecordReader() = default;
  /// Kinds to enable, which this reader reads.
  virtual std::vector<int> kinds() const = 0;
  /// [completing thread, one at a time]
  virtual void read(const void *record, RecordBatch &batch) noexcept = 0;
  /// Called when no batch holds a record: what records pointed to may be freed.
  virtual void between_buffers() noexcept {}
};

/// kConcurrentKernel.
class KernelReader : public RecordReader {
public:
  explicit KernelReader(ReadingContext context) : context_(context) {}
  std::vector<int> kinds() const override { return {cupti::kKindConcurrentKernel}; }
  void read(const void *record, RecordBatch &batch) noexcept override;
  void between_buffers() noexcept override { kernels_.trim(); }

private:
  ReadingContext context_;
  KernelTable kernels_;
};

/// kMemcpy, kMemcpyPeer and kMemset.
class CopyReader : public RecordReader {
public:
  explicit CopyReader(ReadingContext context) : context_(context) {}
  std::vector<int> kinds() const override {
    return {cupti::kKindMemcpy, cupti::kKindMemcpyPeer, cupti::kKindMemset};
  }
  void read(const void *record, RecordBatch &batch) noexcept override;

private:
  ReadingContext context_;
};

/// kGraphTrace: one record per launch of a graph, instead of one per node.
class GraphReader : public RecordReader {
public:
  explicit GraphReader(ReadingContext context) : context_(context) {}
  std::vector<int> kinds() const override { return {cupti::kKindGraphTrace}; }
  void read(const void *record, RecordBatch &batch) noexcept override;

private:
  ReadingContext context_;
};

/// Kind -> reader. Filled before the first session: records of one that ended may still be read
/// when the next one starts.
class ReaderTable {
public:
  void add(RecordReader &reader);
  void between_buffers() noexcept {
    for (RecordReader *reader : readers_)
      if (reader)
        reader->between_buffers();
  }
  RecordReader *find(int kind) const noexcept {
    auto row = static_cast<size_t>(kind);
    return row < readers_.size() ? readers_[row] : nullptr;
  }

private:
  std::array<RecordReader *, 64> readers_{};
};

// Activity buffers that CUPTI fills, used again and again.

class BufferPool {
public:
  BufferPool() { out_.reserve(kUsuallyOut); }
  ~BufferPool() { trim(); }
  BufferPool(const BufferPool &) = delete;
  BufferPool &operator=(const BufferPool &) = delete;

  /// Sets the size of new buffers; buffers of another size are freed as they come back. Some are
  /// made ready, and kept over a pause: new pages would be mapped during launches.
  void prepare(size_t bytes) noexcept;
  size_t bytes() const noexcept;
  /// Null if there is no memory. [any thread]
  uint8_t *acquire(size_t &bytes) noexcept;
  /// False for a buffer that is not ours, which is left alone. [any thread]
  bool release(uint8_t *buffer, size_t bytes) noexcept;
  /// Acquired and not released.
  size_t outstanding() const noexcept;
  /// Frees the buffers that are not in use.
  void trim() noexcept;

private:
  void make_ready() noexcept;

  static constexpr size_t kReadyBytes = size_t{2} << 20;
  static constexpr size_t kMaxFree = 8;
  static constexpr size_t kUsuallyOut = 64;
  mutable std::mutex mutex_;
  size_t bytes_ = size_t{1} << 20;
  std::vector<uint8_t *> free_;
  std::vector<uint8_t *> out_; ///< a few: CUPTI fills one while we read another
};

/// One per process, because CUPTI's buffer callbacks have no argument for us. It is never
/// destroyed: buffers may come back after everything else has stopped.
class ActivityStream {
public:
  ActivityStream(RecordSink &sink, LaunchLog &launches) : sink_(sink), launches_(launches) {}

  void set_library(const CuptiLibrary *library) { library_ = library; }
  /// For the callbacks of the library.
  static void requested(uint8_t **buffer, size_t *bytes, size_t *max_records) noexcept;
  static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                        size_t valid_bytes) noexcept;
  /// Our subscriber, if it is one of several (V2), until null is set: buffers that come later are
  /// read without it.
  void share(void *subscriber);
  /// The stream that the callbacks go to.
  void make_current();

  BufferPool &pool() { return pool_; }
  ReaderTable &readers() { return readers_; }
  Timebase &timebase() { return timebase_; }
  /// Records that CUPTI said it dropped, since the last call of `take_dropped`.
  uint64_t dropped() const noexcept { return dropped_.load(); }
  uint64_t take_dropped() noexcept { return dropped_.exchange(0); }
  /// Buffers that came here although another profiler of this process gave them to CUPTI.
  uint64_t foreign_buffers() const noexcept { return foreign_buffers_.load(); }

private:
  void read(uint8_t *buffer, size_t valid_bytes) noexcept;
  void count_dropped(void *context, uint32_t stream) noexcept;

  RecordSink &sink_;
  LaunchLog &launches_;
  const CuptiLibrary *library_ = nullptr;
  void *shared_ = nullptr; ///< of `reading_`
  BufferPool pool_;
  std::mutex reading_; ///< one buffer at a time; taken before the sink's locks
  ReaderTable readers_;
  Timebase timebase_;
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> foreign_buffers_{0};
};

} // namespace proton
