#include "collector/gpu/devices/device_facts.h"

namespace proton {
namespace {

constexpr uint64_t kEnoughKernels = 32;
constexpr double kShareOfMultiples = 0.75; // of durations, up to 1 ns off

} // namespace

bool DeviceFacts::find(int32_t device) noexcept {
  try {
    std::lock_guard lock(mutex_);
    auto [found, is_new] = entries_.try_emplace(device);
    newest_ = device;
    ticks_ = &found->second.ticks;
    if (!is_new || !source_)
      return true;
    found->second.driver = source_->describe(device);
    DeviceTable::instance().set(found->second.driver.device);
    return true;
  } catch (...) { // no memory: the device stays without facts
    newest_ = kNone;
    return false;
  }
}

std::map<int32_t, DeviceFacts::Facts> DeviceFacts::list() const {
  std::lock_guard lock(mutex_);
  std::map<int32_t, Facts> facts;
  for (const auto &[device, entry] : entries_) {
    Facts &to = facts[device];
    to.driver = entry.driver;
    const auto &multiples = entry.ticks.multiples;
    uint64_t all = 0;
    for (const std::atomic<uint64_t> &count : multiples)
      all += count.load(std::memory_order_relaxed);
    uint64_t so_far = 0; // durations that are multiples of 1 << bits
    for (int bits = kBits; bits >= 0 && all >= kEnoughKernels; --bits) {
      so_far += multiples[static_cast<size_t>(bits)].load(std::memory_order_relaxed);
      if (static_cast<double>(so_far) < kShareOfMultiples * static_cast<double>(all))
        continue;
      to.tick_ns = int64_t{1} << bits;
      break;
    }
  }
  return facts;
}

} // namespace proton
