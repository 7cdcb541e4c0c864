// The completing side: buffers that CUPTI filled, read and handed to the sink.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "collector/cupti/activity/buffer_pool.h"
#include "collector/cupti/activity/record_reader.h"
#include "collector/cupti/activity/timebase.h"
#include "driver/cupti/cupti_library.h"
#include "record/record_sink.h"

namespace proton {

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
