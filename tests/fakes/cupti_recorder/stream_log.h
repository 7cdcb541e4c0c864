// The stream in memory: chunks are appended from any thread and written at the end.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "stream_format.h"

namespace recording {

inline int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class StreamLog {
public:
  StreamLog() { bytes_.assign(stream::kMagic, sizeof stream::kMagic); }

  /// Returns the number of a string.
  int32_t text(std::string_view value) {
    std::lock_guard lock(mutex_);
    auto found = texts_.find(std::string(value));
    if (found != texts_.end())
      return found->second;
    const auto number = static_cast<int32_t>(texts_.size());
    texts_.emplace(value, number);
    chunk(stream::kText, value);
    return number;
  }

  void fact(const std::string &key, const std::string &value) {
    std::lock_guard lock(mutex_);
    chunk(stream::kFact, key + "=" + value);
  }

  /// Appends a callback and fills in its thread and time.
  void call(stream::Call call) {
    std::lock_guard lock(mutex_);
    const auto next = static_cast<uint16_t>(threads_.size());
    call.thread = threads_.emplace(syscall(SYS_gettid), next).first->second;
    call.time_ns = monotonic_ns();
    chunk(stream::kCall, {reinterpret_cast<const char *>(&call), sizeof call});
  }

  void buffer(stream::Buffer head, const std::vector<uint32_t> &sizes, std::string_view records) {
    std::lock_guard lock(mutex_);
    head.time_ns = monotonic_ns();
    head.record_count = static_cast<uint32_t>(sizes.size());
    head.bytes = static_cast<uint32_t>(records.size());
    std::string payload(reinterpret_cast<const char *>(&head), sizeof head);
    payload.append(reinterpret_cast<const char *>(sizes.data()), sizes.size() * sizeof(uint32_t));
    payload += records;
    chunk(stream::kBuffer, payload);
  }

  /// Returns the number of a stream's handle; 0 is the default stream.
  uint32_t stream_number(const void *handle) {
    if (handle == nullptr)
      return 0;
    std::lock_guard lock(mutex_);
    const auto next = static_cast<uint32_t>(streams_.size() + 1);
    return streams_.emplace(handle, next).first->second;
  }

  bool write(const char *path) {
    std::lock_guard lock(mutex_);
    std::FILE *file = std::fopen(path, "wb");
    if (file == nullptr)
      return false;
    const bool is_whole = std::fwrite(bytes_.data(), 1, bytes_.size(), file) == bytes_.size();
    return std::fclose(file) == 0 && is_whole;
  }

private:
  void chunk(stream::Tag tag, std::string_view payload) {
    const stream::ChunkHead head{tag, static_cast<uint32_t>(payload.size())};
    bytes_.append(reinterpret_cast<const char *>(&head), sizeof head);
    bytes_.append(payload);
  }

  std::mutex mutex_;
  std::string bytes_;
  std::map<std::string, int32_t> texts_;
  std::map<long, uint16_t> threads_;
  std::map<const void *, uint32_t> streams_;
};

} // namespace recording
