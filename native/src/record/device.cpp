#include "record/device.h"

#include "support/fork_locks.h"

namespace proton {

DeviceTable &DeviceTable::instance() {
  static DeviceTable *table = [] {
    auto *made = new DeviceTable; // outlives threads of the target
    guard_across_fork(made->mutex_, LockRank::kDevices);
    return made;
  }();
  return *table;
}

int32_t DeviceTable::find_or_add(const std::string &kind, int32_t index) {
  std::lock_guard lock(mutex_);
  auto [found, is_new] =
      positions_.try_emplace({kind, index}, static_cast<int32_t>(devices_.size()));
  if (is_new) {
    Device device;
    device.kind = kind;
    device.index = index;
    devices_.push_back(device);
  }
  return found->second;
}

void DeviceTable::set(const Device &device) {
  int32_t position = find_or_add(device.kind, device.index);
  std::lock_guard lock(mutex_);
  devices_[static_cast<size_t>(position)] = device;
}

std::vector<Device> DeviceTable::list() const {
  std::lock_guard lock(mutex_);
  return devices_;
}

} // namespace proton
