// Readings of what has a value at any time, and which GPUs there are to read.
#include <pybind11/stl.h>

#include "bindings/module/bindings.h"
#include "driver/cuda/cuda_driver.h"
#include "record/device.h"
#include "record/timeline_event.h"
#include "session/session_registry.h"
#include "support/error.h"

namespace py = pybind11;

namespace proton {
namespace {

constexpr const char *kCuda = "CUDA";

/// An empty kind means the host.
void add_counters(int64_t at_ns, const std::string &device_kind, int32_t device_index,
                  const std::vector<std::pair<std::string, double>> &readings) {
  int32_t device = -1;
  if (!device_kind.empty())
    device = DeviceTable::instance().find_or_add(device_kind, device_index);
  std::vector<EventCounter> counters;
  counters.reserve(readings.size());
  for (const auto &[name, value] : readings)
    counters.push_back({at_ns, device, Name(name), value});
  for (const std::shared_ptr<Session> &session : SessionRegistry::instance().list())
    session->add_counters(counters);
}

/// Those that some record was about, or whose context was seen.
std::vector<int32_t> cuda_ordinals() {
  std::vector<int32_t> found;
  for (const Device &device : DeviceTable::instance().list())
    if (device.kind == kCuda)
      found.push_back(device.index);
  return found;
}

/// Empty where there is no driver, no such device, or CUDA was not started yet.
std::string cuda_uuid(int32_t ordinal) {
  try {
    static const CudaDriver *driver = new CudaDriver(CudaDriver::open());
    return driver->device(ordinal).uuid;
  } catch (const Error &) {
    return {};
  }
}

} // namespace

void bind_counters(py::module_ &module) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  module.def("add_counters", &add_counters, py::arg("at_ns"), py::arg("device_kind"),
             py::arg("device_index"), py::arg("readings"), py::pos_only(), Unlocked());
  module.def("cuda_ordinals", &cuda_ordinals);
  module.def("cuda_uuid", &cuda_uuid, py::arg("ordinal"), py::pos_only(), Unlocked());
}

} // namespace proton
