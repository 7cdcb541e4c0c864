#include "collector/cupti/activity/buffer_pool.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace proton {
namespace {

constexpr std::align_val_t kAlignment{64}; // CUPTI wants 8

void free_buffer(uint8_t *buffer) noexcept { ::operator delete(buffer, kAlignment); }

} // namespace

void BufferPool::prepare(size_t bytes) noexcept {
  if (bytes != this->bytes())
    trim();
  {
    std::lock_guard lock(mutex_);
    bytes_ = bytes;
  }
  make_ready();
}

void BufferPool::make_ready() noexcept {
  try {
    std::lock_guard lock(mutex_);
    free_.reserve(kMaxFree);
    const size_t count = std::min(kMaxFree, kReadyBytes / bytes_);
    while (free_.size() < count) {
      auto *buffer = static_cast<uint8_t *>(::operator new(bytes_, kAlignment));
      std::memset(buffer, 0, bytes_); // has its pages mapped
      free_.push_back(buffer);
    }
  } catch (...) { // no memory: a later `acquire` reports it
  }
}

size_t BufferPool::bytes() const noexcept {
  std::lock_guard lock(mutex_);
  return bytes_;
}

uint8_t *BufferPool::acquire(size_t &bytes) noexcept {
  uint8_t *buffer = nullptr;
  try {
    std::lock_guard lock(mutex_);
    bytes = bytes_;
    if (!free_.empty()) {
      buffer = free_.back();
      free_.pop_back();
    } else {
      buffer = static_cast<uint8_t *>(::operator new(bytes, kAlignment));
    }
    out_.push_back(buffer);
    return buffer;
  } catch (...) { // no memory
    if (buffer)
      free_buffer(buffer);
    bytes = 0;
    return nullptr;
  }
}

bool BufferPool::release(uint8_t *buffer, size_t bytes) noexcept {
  if (!buffer)
    return true;
  try {
    std::lock_guard lock(mutex_);
    auto found = std::find(out_.begin(), out_.end(), buffer);
    if (found == out_.end())
      return false;
    out_.erase(found);
    if (bytes == bytes_ && free_.size() < kMaxFree) {
      free_.push_back(buffer);
      return true;
    }
  } catch (...) { // no memory to keep it
  }
  free_buffer(buffer);
  return true;
}

size_t BufferPool::outstanding() const noexcept {
  std::lock_guard lock(mutex_);
  return out_.size();
}

void BufferPool::trim() noexcept {
  std::lock_guard lock(mutex_);
  for (uint8_t *buffer : free_)
    free_buffer(buffer);
  free_.clear();
}

} // namespace proton
