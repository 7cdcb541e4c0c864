// The source of facts about devices.
#pragma once

#include <cstdint>
#include <string>

#include "record/device.h"

namespace proton {

/// A vendor's description of a device; 0 and "" where it does not answer.
struct DeviceDescription {
  Device device;
  std::string name;
  std::string uuid;
};

class DeviceSource {
public:
  virtual ~DeviceSource() = default;
  /// Facts about the device with this number in records. May throw std::bad_alloc.
  virtual DeviceDescription describe(int32_t device) const = 0;
};

} // namespace proton
