#include "collector/cupti/buffer_pool.h"

#include <new>

namespace proton {
namespace {

constexpr std::align_val_t kAlignment{64}; // CUPTI wants 8

void free_buffer(uint8_t *buffer) noexcept { ::operator delete(buffer, kAlignment); }

} // namespace

void BufferPool::set_bytes(size_t bytes) noexcept {
  trim();
  std::lock_guard lock(mutex_);
  bytes_ = bytes;
}

size_t BufferPool::bytes() const noexcept {
  std::lock_guard lock(mutex_);
  return bytes_;
}

uint8_t *BufferPool::acquire(size_t &bytes) noexcept {
  {
    std::lock_guard lock(mutex_);
    bytes = bytes_;
    if (!free_.empty()) {
      uint8_t *buffer = free_.back();
      free_.pop_back();
      return buffer;
    }
  }
  auto *buffer = static_cast<uint8_t *>(::operator new(bytes, kAlignment, std::nothrow));
  bytes = buffer ? bytes : 0;
  return buffer;
}

void BufferPool::release(uint8_t *buffer, size_t bytes) noexcept {
  if (!buffer)
    return;
  try {
    std::lock_guard lock(mutex_);
    if (bytes == bytes_ && free_.size() < kMaxFree) {
      free_.push_back(buffer);
      return;
    }
  } catch (...) { // no memory to keep it
  }
  free_buffer(buffer);
}

void BufferPool::trim() noexcept {
  std::lock_guard lock(mutex_);
  for (uint8_t *buffer : free_)
    free_buffer(buffer);
  free_.clear();
}

} // namespace proton
