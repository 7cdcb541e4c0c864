// Calls of a double that fail: "hsa_init=4104,hipSetDevice@3=101" has every call of the
// first and the third call of the second return a code; "*@7=1" has the seventh call of all fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace fake {

class FaultTable {
public:
  /// `variable` of the environment has the faults until `set` is called. Only with
  /// `counts_all` is there "*".
  explicit FaultTable(const char *variable, bool counts_all = false) : counts_all_(counts_all) {
    set(std::getenv(variable));
  }

  void set(const char *text) {
    std::lock_guard lock(mutex_);
    text_ = text == nullptr ? "" : text;
    is_any_ = !text_.empty();
  }

  /// Counts a call of an entry point; returns the code of its failure, or 0.
  int called(const char *name, std::atomic<uint64_t> &calls) {
    const uint64_t call = calls.fetch_add(1, std::memory_order_relaxed) + 1;
    const uint64_t overall = counts_all_ ? overall_.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
    if (!is_any_.load(std::memory_order_relaxed))
      return 0;
    std::lock_guard lock(mutex_);
    const std::string plain = name;
    for (const std::string &key :
         {plain, plain + "@" + std::to_string(call), "*@" + std::to_string(overall)}) {
      const std::string wanted = "," + key + "=";
      const std::string searched = "," + text_;
      const size_t at = searched.find(wanted);
      if (at != std::string::npos)
        return std::atoi(searched.c_str() + at + wanted.size());
    }
    return 0;
  }

  void know(const std::string &name, const std::atomic<uint64_t> *calls) {
    std::lock_guard lock(mutex_);
    calls_[name] = calls;
  }

  uint64_t calls(const std::string &name) {
    if (name == "*")
      return overall_.load();
    std::lock_guard lock(mutex_);
    const auto found = calls_.find(name);
    return found == calls_.end() ? 0 : found->second->load();
  }

private:
  const bool counts_all_;
  std::atomic<bool> is_any_{false};
  std::atomic<uint64_t> overall_{0};
  std::mutex mutex_;
  std::map<std::string, const std::atomic<uint64_t> *> calls_;
  std::string text_;
};

} // namespace fake
