// Activity buffers that CUPTI fills, used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace proton {

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

} // namespace proton
