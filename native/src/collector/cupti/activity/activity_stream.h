// The completing side: buffers that CUPTI filled, read and handed to the sink.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "collector/cupti/activity/record_reader.h"
#include "driver/cupti/cupti_library.h"
#include "record/record_sink.h"

namespace proton {

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
  void read(void *context, uint32_t stream, uint8_t *buffer, size_t valid_bytes) noexcept;
  void count_dropped(void *context, uint32_t stream) noexcept;

  RecordSink &sink_;
  LaunchLog &launches_;
  const CuptiLibrary *library_ = nullptr;
  BufferPool pool_;
  std::mutex reading_; ///< one buffer at a time; taken before the sink's locks
  ReaderTable readers_;
  Timebase timebase_;
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> foreign_buffers_{0};
};

} // namespace proton
