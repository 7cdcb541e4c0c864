// Metric values from Python.
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/launch_metrics.h"
#include "bindings/python_text.h"
#include "context/thread_state.h"
#include "record/record_sink.h"
#include "session/session_registry.h"
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
  SessionRegistry &registry = SessionRegistry::instance();
  // The lock is free nearly always, and giving the GIL up can mean waiting for it.
  if (registry.try_add_metrics(at, metrics))
    return;
  py::gil_scoped_release release;
  registry.add_metrics(at, metrics);
}

namespace {

int64_t to_int(const std::string &name, py::handle value) {
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0)
    throw Error(ErrorCode::kMetric,
                "metric '" + name + "' does not fit into 64 bits; record it as a float");
  if (number == -1 && PyErr_Occurred())
    throw py::error_already_set();
  return number;
}

[[noreturn]] void refuse(const std::string &name, py::handle value) {
  throw Error(ErrorCode::kMetric, "metric '" + name + "' has type " +
                                      Py_TYPE(value.ptr())->tp_name +
                                      "; give an int, a float, or a list of ints or floats");
}

MetricValue parse_vector(const std::string &name, const py::sequence &values) {
  bool all_ints = true;
  for (py::handle value : values) {
    if (!PyLong_Check(value.ptr()) && !PyFloat_Check(value.ptr()))
      refuse(name, value);
    all_ints = all_ints && PyLong_Check(value.ptr());
  }
  if (all_ints) {
    std::vector<int64_t> ints;
    for (py::handle value : values)
      ints.push_back(to_int(name, value));
    return ints;
  }
  std::vector<double> doubles;
  for (py::handle value : values)
    doubles.push_back(value.cast<double>());
  return doubles;
}

MetricValue parse_value(const std::string &name, py::handle value) {
  if (PyLong_Check(value.ptr()))
    return to_int(name, value);
  if (PyFloat_Check(value.ptr()))
    return PyFloat_AS_DOUBLE(value.ptr());
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()))
    return parse_vector(name, py::reinterpret_borrow<py::sequence>(value));
  refuse(name, value);
}

ContextId context_of_scope(uint64_t scope_id) {
  ShadowStack &stack = this_thread().stack;
  for (uint32_t i = stack.depth(); i-- != 0;)
    if (stack.entry(i).scope_id == scope_id)
      return stack.entry(i).id.load(std::memory_order_relaxed);
  throw Error(ErrorCode::kScope, "scope " + std::to_string(scope_id) +
                                     " is not open on this thread; add metrics inside the scope");
}

std::vector<UserMetric> parse_metrics(const py::sequence &items) {
  std::vector<UserMetric> metrics;
  for (py::handle item : items) {
    auto triple = item.cast<py::tuple>();
    UserMetric metric;
    metric.name = std::string(PythonText(triple[0].ptr(), "the name of a metric").text());
    metric.aggregation = parse_aggregation(triple[1].cast<std::string>());
    if (py::isinstance<DeviceValues>(triple[2]))
      metric.on_device = triple[2].cast<std::shared_ptr<DeviceValues>>();
    else
      metric.value = parse_value(metric.name, triple[2]);
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

void add_metrics(const py::sequence &items, std::optional<uint64_t> scope_id) {
  std::vector<UserMetric> metrics = parse_metrics(items);
  Capture at = capture_current();
  if (at.epoch == 0)
    return;
  if (scope_id)
    at.shadow = context_of_scope(*scope_id);
  add_metrics_at(at, metrics);
}

/// A metric whose value is known later: its place is kept like that of a launch.
uint64_t owe_metrics() {
  uint64_t id = next_correlation_id();
  return Aggregator::instance().launched(id) == 0 ? 0 : id;
}

void pay_metrics(uint64_t id, const py::sequence &items) {
  std::vector<UserMetric> metrics = parse_metrics(items);
  py::gil_scoped_release release;
  SessionRegistry::instance().pay_metrics(id, metrics);
}

} // namespace

void bind_metrics(py::module_ &module) {
  module.def("add_metrics", &add_metrics, py::arg("metrics"), py::arg("scope_id") = py::none(),
             py::pos_only());
  module.def("owe_metrics", &owe_metrics);
  module.def("pay_metrics", &pay_metrics, py::arg("debt"), py::arg("metrics"), py::pos_only());
}

} // namespace proton
