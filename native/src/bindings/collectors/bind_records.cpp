// Devices and records from Python: the slow way for third-party collectors, and the capsule.
#include <pybind11/stl.h>

#include "aggregate/consumer/aggregator.h"
#include "bindings/module/bindings.h"
#include "bindings/values/python_text.h"
#include "bindings/values/python_variant.h"
#include "record/device.h"
#include "session/record_sink_abi.h"
#include "support/error.h"

namespace py = pybind11;

namespace proton {
namespace {

void set_device(const std::string &kind, int32_t index, const py::dict &attributes) {
  Device device;
  device.kind = kind;
  device.index = index;
  for (auto [key, value] : attributes) {
    auto name = key.cast<std::string>();
    if (name == "arch")
      device.arch = value.cast<std::string>();
    else if (name == "num_sms")
      device.num_sms = value.cast<int64_t>();
    else if (name == "clock_rate_khz")
      device.clock_rate_khz = value.cast<int64_t>();
    else if (name == "memory_clock_rate_khz")
      device.memory_clock_rate_khz = value.cast<int64_t>();
    else if (name == "bus_width_bits")
      device.bus_width_bits = value.cast<int64_t>();
    else
      throw Error(ErrorCode::kUsage,
                  "unknown device attribute '" + name +
                      "'; choose arch, num_sms, clock_rate_khz, memory_clock_rate_khz or "
                      "bus_width_bits");
  }
  DeviceTable::instance().set(device);
}

uint64_t emit_launch() {
  uint64_t id = next_correlation_id();
  Aggregator::instance().launched(id);
  return id;
}

void emit_kernel(uint64_t correlation_id, const py::str &name, int64_t start_ns, int64_t end_ns,
                 const std::string &device_kind, int32_t device_index, uint32_t stream,
                 const py::object &variant) {
  KernelRecord record;
  record.correlation_id = correlation_id;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  std::string text(PythonText(name.ptr(), "name").text());
  record.name = text.c_str();
  record.device_kind = device_kind.c_str();
  record.device_index = device_index;
  record.stream = stream;
  PythonVariant facts(variant);
  record.variant = facts.record();
  py::gil_scoped_release release;
  Aggregator::instance().complete({&record, 1});
}

void add_dropped(const std::string &reason, uint64_t count) {
  Aggregator::instance().dropped({reason.c_str(), count});
}

} // namespace

void bind_records(py::module_ &module) {
  module.def("set_device", &set_device);
  module.def("record_sink",
             [] { return py::capsule(record_sink_abi(), "proton_bench.record_sink"); });
  module.def("emit_launch", &emit_launch);
  module.def(
      "emit_failed_launch", [](uint64_t id) { Aggregator::instance().failed(id); },
      py::call_guard<py::gil_scoped_release>());
  module.def("emit_kernel", &emit_kernel, py::arg("correlation_id"), py::arg("name"),
             py::arg("start_ns"), py::arg("end_ns"), py::arg("device_kind"),
             py::arg("device_index"), py::arg("stream"), py::arg("variant") = py::none(),
             py::pos_only());
  module.def("add_dropped", &add_dropped);
}

} // namespace proton
