#include "correlation/device_values.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

namespace proton {
namespace {

// More than the thousand launches that a driver queues for a device, because the host may read
// nothing between the last of them and the end; small enough for a thousand graphs.
constexpr uint32_t kMostEntries = 2048;
constexpr uint32_t kRingWords = 32768; ///< of sets of many values, which get fewer entries
constexpr uint32_t kLeastEntries = 16;

} // namespace

DeviceValues::DeviceValues(uint64_t *words, uint32_t size, bool is_float, bool is_vector)
    : words_(words), size_(size), capacity_(capacity_of(size)), is_float_(is_float),
      is_vector_(is_vector) {
  exist_.store(true, std::memory_order_relaxed);
}

std::atomic<bool> DeviceValues::exist_{false};

uint32_t DeviceValues::capacity_of(uint32_t size) {
  return std::clamp(kRingWords / (size + 1), kLeastEntries, kMostEntries);
}

size_t DeviceValues::bytes(uint32_t size) {
  return (kHeaderWords + size_t{capacity_of(size)} * (size + 1)) * sizeof(uint64_t);
}

void DeviceValues::pull() {
  uint64_t count = std::atomic_ref(words_[0]).load(std::memory_order_acquire);
  while (next_ < count) {
    if (overdue_ != 0)
      --overdue_;
    else
      came_.push_back(read(next_));
    ++next_;
    std::atomic_ref(words_[1]).store(next_, std::memory_order_release);
  }
}

std::optional<MetricValue> DeviceValues::take() {
  pull();
  if (came_.empty()) {
    ++overdue_;
    return std::nullopt;
  }
  std::optional<MetricValue> value = std::move(came_.front());
  came_.pop_front();
  return value;
}

void DeviceValues::skip() {
  overdue_ = 0;
  pull();
  came_.clear();
}

std::optional<MetricValue> DeviceValues::read(uint64_t number) const {
  const uint64_t *entry = words_ + kHeaderWords + number % capacity_ * (size_ + 1);
  if (entry[0] != number + 1)
    return std::nullopt;
  if (is_float_) {
    std::vector<double> values;
    for (uint32_t i = 1; i <= size_; ++i)
      values.push_back(std::bit_cast<double>(entry[i]));
    return is_vector_ ? MetricValue(std::move(values)) : MetricValue(values[0]);
  }
  std::vector<int64_t> values;
  for (uint32_t i = 1; i <= size_; ++i)
    values.push_back(std::bit_cast<int64_t>(entry[i]));
  return is_vector_ ? MetricValue(std::move(values)) : MetricValue(values[0]);
}

} // namespace proton
