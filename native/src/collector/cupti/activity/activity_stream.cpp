#include "collector/cupti/activity/activity_stream.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "driver/cupti/cupti_records.h"
#include "support/clock.h"

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

namespace {

std::atomic<ActivityStream *> g_current{nullptr};

} // namespace

void ActivityStream::make_current() { g_current.store(this, std::memory_order_release); }

void ActivityStream::requested(uint8_t **buffer, size_t *bytes, size_t *max_records) noexcept {
  ActivityStream *stream = g_current.load(std::memory_order_acquire);
  *max_records = 0; // as many as fit
  *bytes = 0;
  *buffer = stream ? stream->pool_.acquire(*bytes) : nullptr;
}

void ActivityStream::completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                               size_t valid_bytes) noexcept {
  ActivityStream *self = g_current.load(std::memory_order_acquire);
  if (!self)
    return; // it was never ours
  try {
    std::lock_guard lock(self->reading_);
    self->timebase_.observe();
    self->launches_.observe(monotonic_ns());
    self->count_dropped(context, stream);
    if (buffer && valid_bytes != 0)
      self->read(context, stream, buffer, valid_bytes);
  } catch (...) { // a mutex that cannot be locked
    self->sink_.dropped({"activity buffer not read", 1, true});
  }
  if (!self->pool_.release(buffer, bytes))
    self->foreign_buffers_.fetch_add(1);
}

void ActivityStream::read(void *, uint32_t, uint8_t *buffer, size_t valid_bytes) noexcept {
  const CuptiFunctions &cupti = library_->functions();
  RecordBatch batch(sink_);
  void *record = nullptr;
  cupti::Result result = cupti::kSuccess;
  for (;;) {
    result = cupti.activity_get_next_record(buffer, valid_bytes, &record);
    if (result != cupti::kSuccess)
      break;
    int kind = cupti::read<int>(record, cupti::record_offset::kKind);
    if (RecordReader *reader = readers_.find(kind))
      reader->read(record, batch);
  }
  batch.hand_over();
  readers_.between_buffers();
  if (result != cupti::kErrorMaxLimitReached)
    sink_.dropped({"rest of an activity buffer not readable", 1, true});
}

void ActivityStream::count_dropped(void *context, uint32_t stream) noexcept {
  size_t dropped = 0;
  cupti::Result result =
      library_->functions().activity_get_num_dropped_records(context, stream, &dropped);
  if (result != cupti::kSuccess || dropped == 0)
    return;
  dropped_.fetch_add(dropped);
  sink_.dropped({"records dropped by CUPTI", dropped, true});
}

} // namespace proton
