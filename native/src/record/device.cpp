#include "record/device.h"

#include <deque>
#include <map>
#include <mutex>
#include <string>

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

namespace {

constexpr size_t kMaxVariants = 65536;

struct VariantTable {
  VariantTable() { guard_across_fork(mutex, LockRank::kVariants); }
  std::mutex mutex;
  std::map<std::string, int32_t> positions;
  std::deque<VariantRecord> records; // a deque keeps addresses while it grows
  std::deque<std::string> signatures;
};

VariantTable &variant_table() {
  static VariantTable *instance = new VariantTable; // the target's threads may need it to the end
  return *instance;
}

std::string key_of(const VariantRecord &variant) {
  std::string key = std::to_string(variant.code_hash);
  for (int i = 0; i < 3; ++i)
    key += ',' + std::to_string(variant.grid[i]) + ',' + std::to_string(variant.block[i]);
  key += ',' + std::to_string(variant.shared_bytes) + ',' + std::to_string(variant.registers);
  return key + ',' + (variant.signature ? variant.signature : "");
}

} // namespace

int32_t intern_variant(const VariantRecord &variant) {
  std::string key = key_of(variant);
  VariantTable &variants = variant_table();
  std::lock_guard lock(variants.mutex);
  auto found = variants.positions.find(key);
  if (found != variants.positions.end())
    return found->second;
  if (variants.records.size() == kMaxVariants)
    return -1;
  auto position = static_cast<int32_t>(variants.records.size());
  variants.records.push_back(variant);
  variants.signatures.emplace_back(variant.signature ? variant.signature : "");
  variants.records.back().signature = variants.signatures.back().c_str();
  variants.records.back().raw_name = nullptr; // kernels of this table are named by their frames
  variants.records.back().config = nullptr;   // what is interned here was not compiled
  variants.positions.emplace(std::move(key), position);
  return position;
}

const VariantRecord *find_variant(int32_t position) {
  VariantTable &variants = variant_table();
  if (position < 0)
    return nullptr;
  std::lock_guard lock(variants.mutex);
  return &variants.records[static_cast<size_t>(position)];
}

} // namespace proton
