// Values that work of a graph leaves in host memory.
#include <atomic>

#include "bindings/module/bindings.h"
#include "context/thread/graph_capture.h"
#include "correlation/device_values.h"
#include "driver/cuda/cuda_driver.h"
#include "driver/own_work.h"
#include "support/error.h"

namespace py = pybind11;

namespace proton {
namespace {

/// Memory is never freed: a graph may run for as long as the process.
constexpr size_t kMaxBytes = size_t{256} << 20;

const CudaDriver &driver() {
  static const CudaDriver *opened = new CudaDriver(CudaDriver::open());
  return *opened;
}

std::shared_ptr<DeviceValues> make_values(uint32_t size, bool is_float, bool is_vector) {
  if (size == 0 || size > DeviceValues::kMaxSize || (size != 1 && !is_vector))
    throw Error(ErrorCode::kMetric, "a metric on a device has 1 to " +
                                        std::to_string(DeviceValues::kMaxSize) + " values, not " +
                                        std::to_string(size));
  static std::atomic<size_t> allocated{0};
  size_t bytes = DeviceValues::bytes(size);
  bool has_room = allocated.fetch_add(bytes) + bytes <= kMaxBytes;
  void *words = has_room ? driver().allocate_host(bytes) : nullptr;
  if (!words) {
    allocated.fetch_sub(bytes);
    throw Error(ErrorCode::kMetric,
                has_room
                    ? "the driver gives no host memory for values of a graph"
                    : "values of graphs take 256 MiB already; capture fewer metrics on tensors");
  }
  return std::make_shared<DeviceValues>(static_cast<uint64_t *>(words), size, is_float, is_vector);
}

} // namespace

void bind_device_values(py::module_ &module) {
  py::class_<DeviceValues, std::shared_ptr<DeviceValues>>(module, "DeviceValues")
      .def(py::init(&make_values), py::arg("size"), py::arg("is_float"), py::arg("is_vector"),
           py::pos_only())
      .def_property_readonly("address", &DeviceValues::address)
      .def_property_readonly("size", &DeviceValues::size)
      .def_property_readonly("capacity", &DeviceValues::capacity);
  module.def("is_capturing", &is_capturing);
  module.def("any_capture_open", &any_capture_open);
  module.def("exchange_capture_mode", &exchange_capture_mode, py::arg("mode"), py::pos_only());
}

} // namespace proton
