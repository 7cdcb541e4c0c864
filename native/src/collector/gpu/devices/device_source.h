// Where facts of devices come from.
#pragma once

#include <cstdint>
#include <string>

#include "record/device.h"

namespace proton {

/// What a vendor says of a device; 0 and "" where it does not answer.
struct DeviceDescription {
  Device device;
  std::string name;
  std::string uuid;
};

class DeviceSource {
public:
  virtual ~DeviceSource() = default;
  /// Facts of the device that records call by this number. May throw std::bad_alloc.
  virtual DeviceDescription describe(int32_t device) const = 0;
};

} // namespace proton
