// Devices that a collector saw, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <map>

#include "collector/gpu/devices/device_facts.h"

namespace proton {

inline pybind11::list list_devices(const std::map<int32_t, DeviceFacts::Facts> &devices) {
  pybind11::list listed;
  for (const auto &[index, device] : devices) {
    pybind11::dict entry;
    entry["index"] = index;
    entry["name"] = device.driver.name;
    entry["uuid"] = device.driver.uuid;
    entry["tick_ns"] = device.tick_ns;
    listed.append(entry);
  }
  return listed;
}

} // namespace proton
