// Metric values from Python.
#include <pybind11/stl.h>

#include <atomic>

#include "aggregate/consumer/aggregator.h"
#include "aggregate/consumer/given_values.h"
#include "bindings/module/bindings.h"
#include "bindings/values/plain_metrics.h"
#include "bindings/values/python_values.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "correlation/graph_launches.h"
#include "driver/cuda/cuda_driver.h"
#include "driver/own_work.h"
#include "record/record_sink.h"
#include "support/error.h"

namespace py = pybind11;

namespace proton {

Aggregation parse_aggregation(const std::string &text) {
  for (auto candidate : {Aggregation::kInclusive, Aggregation::kExclusive, Aggregation::kProperty})
    if (text == aggregation_text(candidate))
      return candidate;
  throw Error(ErrorCode::kMetric, "unknown aggregation '" + text + "'; choose inc, exc or pty");
}

void add_metrics_at(const Capture &at, const std::vector<UserMetric> &metrics) {
  std::optional<py::gil_scoped_release> release;
  if (is_capturing()) // which waits for the aggregator's lock
    release.emplace();
  give_values_or_capture(at, metrics);
}

namespace {

/// An integer that needs more than 64 bits is a double.
MetricValue to_number(py::handle value) {
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow == 0 && !(number == -1 && PyErr_Occurred()))
    return int64_t{number};
  double wide = overflow != 0 ? PyLong_AsDouble(value.ptr()) : -1;
  if (PyErr_Occurred())
    throw py::error_already_set();
  return wide;
}

[[noreturn]] void refuse(const std::string &name, py::handle value) {
  throw Error(ErrorCode::kMetric,
              "metric '" + name + "' has type " + Py_TYPE(value.ptr())->tp_name +
                  "; give an int, a float, a text, or a list of ints or floats");
}

MetricValue parse_vector(const std::string &name, const py::sequence &values) {
  std::vector<MetricValue> numbers;
  bool all_ints = true;
  for (py::handle value : values) {
    if (PyLong_Check(value.ptr()))
      numbers.push_back(to_number(value));
    else if (PyFloat_Check(value.ptr()))
      numbers.push_back(PyFloat_AS_DOUBLE(value.ptr()));
    else
      refuse(name, value);
    all_ints = all_ints && type_of(numbers.back()) == MetricType::kInt;
  }
  std::vector<int64_t> ints;
  std::vector<double> doubles;
  for (const MetricValue &number : numbers) {
    if (all_ints)
      ints.push_back(std::get<int64_t>(number));
    else
      doubles.push_back(as_double(number));
  }
  if (all_ints)
    return ints;
  return doubles;
}

MetricValue parse_value(const std::string &name, py::handle value) {
  if (PyLong_Check(value.ptr()))
    return to_number(value);
  if (PyFloat_Check(value.ptr()))
    return PyFloat_AS_DOUBLE(value.ptr());
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()))
    return parse_vector(name, py::reinterpret_borrow<py::sequence>(value));
  if (PyUnicode_Check(value.ptr()))
    return std::string(PythonText(value.ptr(), "a metric's text").text());
  refuse(name, value);
}

ContextId open_context(uint64_t scope_id, EpochId epoch) {
  ShadowStack &stack = this_thread().stack;
  for (uint32_t i = stack.depth(); i-- != 0;)
    if (stack.entry(i).scope_id() == scope_id)
      return stack.entry(i).id.load(std::memory_order_relaxed);
  if (std::optional<ContextId> found = context_of_scope(scope_id, epoch))
    return *found;
  throw Error(ErrorCode::kScope,
              "scope " + std::to_string(scope_id) + " is not open; add metrics inside the scope");
}

std::vector<UserMetric> parse_metrics(const py::sequence &items) {
  std::vector<UserMetric> metrics;
  for (py::handle item : items) {
    auto triple = item.cast<py::tuple>();
    const MetricName &name =
        MetricName::of(PythonText(triple[0].ptr(), "the name of a metric").text(),
                       parse_aggregation(triple[1].cast<std::string>()));
    if (py::isinstance<DeviceValues>(triple[2]))
      metrics.emplace_back(name, MetricValue(), triple[2].cast<std::shared_ptr<DeviceValues>>());
    else
      metrics.emplace_back(name, parse_value(name.text, triple[2]));
  }
  return metrics;
}

void add_metrics(const py::sequence &items, std::optional<uint64_t> scope_id) {
  std::vector<UserMetric> metrics = parse_metrics(items);
  Capture at = capture_current();
  if (at.epoch == 0)
    return;
  if (scope_id)
    at.shadow = open_context(*scope_id, at.epoch);
  add_metrics_at(at, metrics);
}

/// A metric whose value is known later: its place is kept like that of a launch.
uint64_t defer_metrics() {
  uint64_t id = next_correlation_id();
  return Aggregator::instance().launched(id) == 0 ? 0 : id;
}

void add_deferred_metrics(uint64_t id, const py::sequence &items) {
  give_launch_values(id, parse_metrics(items));
}

// Values that work of a graph leaves in host memory.

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

} // namespace

void bind_metrics(py::module_ &module) {
  bind_device_values(module);
  module.def("add_metrics", &add_metrics, py::arg("metrics"), py::arg("scope_id") = py::none(),
             py::pos_only());
  module.def("defer_metrics", &defer_metrics);
  module.def("add_deferred_metrics", &add_deferred_metrics, py::arg("place"), py::arg("metrics"),
             py::pos_only());
}

} // namespace proton
