// Records of one size that go to a profiler from a worker thread, block by block.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tracer.h"

namespace fake {

template <typename Record> class RecordBlocks {
public:
  using Deliver = std::function<void(std::vector<Record> &block, uint64_t dropped)>;

  /// Delivers a block at `most` records.
  RecordBlocks(size_t most, Deliver deliver)
      : most_(most == 0 ? 1 : most), deliver_(std::move(deliver)) {
    current_.reserve(most_);
    worker_ = std::thread([this] { run(); });
  }

  ~RecordBlocks() {
    {
      std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    wake_.notify_one();
    worker_.join();
  }

  void append(const Record &record) {
    std::lock_guard lock(mutex_);
    if (take_drop() != 0) {
      ++dropped_;
      return;
    }
    current_.push_back(record);
    if (current_.size() >= most_)
      hand_over();
  }

  /// Delivers everything and waits.
  void flush() {
    {
      std::lock_guard lock(mutex_);
      if (!current_.empty() || dropped_ != 0)
        hand_over();
    }
    drain();
  }

  void drain() {
    std::unique_lock lock(mutex_);
    if (std::this_thread::get_id() == worker_.get_id())
      return;
    idle_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
  }

  uint64_t waiting() {
    std::lock_guard lock(mutex_);
    uint64_t records = current_.size();
    for (const auto &[block, dropped] : queue_)
      records += block.size();
    return records;
  }

private:
  void hand_over() {
    if (getpid() != process_) { // forked: no worker there, as where a library ends with its process
      deliver_(current_, std::exchange(dropped_, 0));
      current_.clear();
      return;
    }
    queue_.emplace_back(std::move(current_), std::exchange(dropped_, 0));
    current_ = {};
    current_.reserve(most_);
    wake_.notify_one();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return !queue_.empty() || is_ending_; });
      if (queue_.empty())
        return;
      auto [block, dropped] = std::move(queue_.front());
      queue_.pop_front();
      is_busy_ = true;
      lock.unlock();
      if (is_shuffled())
        std::reverse(block.begin(), block.end());
      deliver_(block, dropped);
      lock.lock();
      is_busy_ = false;
      if (queue_.empty())
        idle_.notify_all();
    }
  }

  const size_t most_;
  const Deliver deliver_;
  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::vector<Record> current_;
  std::deque<std::pair<std::vector<Record>, uint64_t>> queue_;
  uint64_t dropped_ = 0;
  bool is_busy_ = false;
  bool is_ending_ = false;
  std::thread worker_;
};

} // namespace fake
