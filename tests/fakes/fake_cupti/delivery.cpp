#include <chrono>

#include "library.h"

namespace fake {

void Delivery::register_callbacks(cupti::BufferRequested requested,
                                  cupti::BufferCompleted completed) {
  completed_ = completed;
  requested_ = requested;
}

void Delivery::append(const void *record, size_t bytes) {
  std::lock_guard lock(append_);
  if (current_.bytes != nullptr && current_.used + bytes > current_.size) {
    hand_over(current_);
    current_ = {nullptr, 0, 0};
  }
  if (current_.bytes == nullptr) {
    size_t most_records = 0;
    cupti::BufferRequested request = requested_;
    if (request != nullptr)
      request(&current_.bytes, &current_.size, &most_records);
    current_.used = 0;
    if (current_.bytes == nullptr || current_.size < bytes) {
      current_ = {nullptr, 0, 0};
      ++dropped_;
      return;
    }
    ++outstanding_;
  }
  std::memcpy(current_.bytes + current_.used, record, bytes);
  current_.used += bytes;
}

void Delivery::hand_over(const Buffer &buffer) {
  std::lock_guard lock(queue_mutex_);
  if (!is_started_) {
    std::thread([this] { run(); }).detach();
    is_started_ = true;
  }
  queue_.push_back(buffer);
  wake_.notify_one();
}

void Delivery::deliver(const Buffer &buffer) {
  cupti::BufferCompleted completed = completed_;
  if (completed != nullptr)
    completed(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
  --outstanding_;
}

bool Delivery::take(Buffer &buffer) {
  std::lock_guard lock(append_);
  buffer = current_;
  current_ = {nullptr, 0, 0};
  return buffer.bytes != nullptr;
}

void Delivery::run() {
  std::unique_lock lock(queue_mutex_);
  for (;;) {
    const auto has_work = [this] { return !queue_.empty(); };
    bool is_due = false;
    if (period_ms_ == 0)
      wake_.wait(lock, [&] { return has_work() || period_ms_ != 0; });
    else
      is_due = !wake_.wait_for(lock, std::chrono::milliseconds(period_ms_), has_work);
    Buffer buffer{nullptr, 0, 0};
    if (!queue_.empty()) {
      buffer = queue_.front();
      queue_.pop_front();
    }
    is_busy_ = true;
    lock.unlock();
    if (buffer.bytes != nullptr || (is_due && take(buffer)))
      deliver(buffer);
    lock.lock();
    is_busy_ = false;
    if (queue_.empty())
      idle_.notify_all();
  }
}

void Delivery::drain() {
  std::unique_lock lock(queue_mutex_);
  idle_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
}

void Delivery::flush() {
  drain();
  Buffer buffer{nullptr, 0, 0};
  if (take(buffer))
    deliver(buffer);
}

void Delivery::complete_on_worker() {
  Buffer buffer{nullptr, 0, 0};
  if (take(buffer))
    hand_over(buffer);
  drain();
}

void Delivery::set_period(uint32_t milliseconds) {
  std::lock_guard lock(queue_mutex_);
  period_ms_ = milliseconds;
  if (!is_started_ && milliseconds != 0) {
    std::thread([this] { run(); }).detach();
    is_started_ = true;
  }
  wake_.notify_one();
}

void Delivery::drop(uint64_t records) { dropped_ += records; }

} // namespace fake
