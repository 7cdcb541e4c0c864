// Launches of the calling thread between the moment Triton asked for a buffer and the end of the
// launch call. They nest: a launch's metadata may launch kernels of its own.
#pragma once

#include <array>
#include <cstdint>

#include "collector/instrumentation/buffers/scratch_pool.h"

namespace proton {

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

} // namespace proton
