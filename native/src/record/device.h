// Devices that records name, with the facts that a roofline needs.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "record/record.h"

namespace proton {

/// One device; 0 and "" mean unknown.
struct Device {
  std::string kind; ///< "CUDA", "HIP" or "CPU"
  int32_t index = 0;
  std::string arch;
  int64_t num_sms = 0;
  int64_t clock_rate_khz = 0;
  int64_t memory_clock_rate_khz = 0;
  int64_t bus_width_bits = 0;
};

/// The devices of the process. [any thread]
class DeviceTable {
public:
  static DeviceTable &instance();
  /// Position of the device, added with unknown facts when it is new.
  int32_t find_or_add(const std::string &kind, int32_t index);
  void set(const Device &device);
  std::vector<Device> list() const;

private:
  mutable std::mutex mutex_;
  std::vector<Device> devices_;
  std::map<std::pair<std::string, int32_t>, int32_t> positions_;
};

// Process-wide table of variants for records that carry an index instead of a pointer.

/// Position of an equal variant, added when it is new; -1 once 65 536 differ. [any thread] locks
int32_t intern_variant(const VariantRecord &variant);
/// The variant at a position that intern_variant returned; null for -1. [any thread] locks
const VariantRecord *find_variant(int32_t position);

} // namespace proton
