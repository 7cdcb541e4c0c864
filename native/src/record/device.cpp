#include "record/device.h"

#include "support/fork_locks.h"

namespace proton {

DeviceTable &DeviceTable::instance() {
  static DeviceTable *table = [] {
    auto *made = new DeviceTable; // the target's threads may need it to the end
    guard_across_fork(made->mutex_, LockRank::kDevices);
    return made;
  }();
  return *table;
}

int32_t DeviceTable::find_or_add(const std::string &kind, int32_t index) {
  std::lock_guard lock(mutex_);
  auto found = positions_.find({kind, index});
  if (found == positions_.end()) {
    Device device;
    device.kind = kind;
    device.index = index;
    devices_.reserve(devices_.size() + 1); // what may fail comes before the position is known
    found = positions_.try_emplace({kind, index}, static_cast<int32_t>(devices_.size())).first;
    devices_.push_back(std::move(device));
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
