#include "bindings/values/plain_metrics.h"

#include <cmath>
#include <cstring>

namespace py = pybind11;

namespace proton {
namespace {

constexpr double kInt64Limit = 0x1p63;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> choices) {
  for (std::string_view choice : choices)
    if (text == choice)
      return true;
  return false;
}

std::string_view utf8_of(PyObject *key) {
  Py_ssize_t size = 0;
  const char *bytes = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
  PyErr_Clear(); // lone surrogates: Python's side handles and reports them
  return bytes ? std::string_view(bytes, static_cast<size_t>(size)) : std::string_view();
}

} // namespace

PlainMetrics::~PlainMetrics() {
  for (Key &key : keys_)
    Py_CLEAR(key.text);
}

const PlainMetrics::Key &PlainMetrics::find(PyObject *key) {
  auto address = reinterpret_cast<uintptr_t>(key) * 0x9E3779B97F4A7C15ull;
  Key &known = keys_[(address >> 40) % keys_.size()];
  if (known.text == key)
    return known;
  std::string_view text = utf8_of(key);
  Key fresh;
  fresh.is_reserved = source_ == Source::kLaunch && is_one_of(text, {"name", "function", "stream"});
  if (!fresh.is_reserved && !text.empty()) {
    py::object parse =
        py::module_::import("proton_bench.recording.context.metric").attr("parse_metric_name");
    try {
      py::tuple parsed = parse(py::handle(key));
      fresh.name = &MetricName::of(parsed[0].cast<std::string>(),
                                   parse_aggregation(parsed[1].cast<std::string>()));
    } catch (py::error_already_set &) { // Python's side says what is wrong with it
    }
    std::string_view name = fresh.name ? std::string_view(fresh.name->text) : "";
    if (name == "bytes")
      fresh.coercion = Coercion::kInt;
    else if (is_one_of(name, {"flops", "flops8", "flops16", "flops32", "flops64"}))
      fresh.coercion = Coercion::kFloat;
  }
  fresh.text = Py_NewRef(key);
  Py_XDECREF(known.text);
  known = std::move(fresh);
  return known;
}

std::optional<MetricValue> PlainMetrics::plain_value(const Key &key, PyObject *value) const {
  if (PyUnicode_CheckExact(value) && key.name->aggregation != Aggregation::kInclusive) {
    std::string_view text = utf8_of(value);
    if (text.empty())
      return std::nullopt; // or no text that can be written: Python's side says so
    return MetricValue(std::string(text));
  }
  if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    if (key.coercion != Coercion::kInt)
      return MetricValue(number);
    if (std::isfinite(number) && number >= -kInt64Limit && number < kInt64Limit)
      return MetricValue(static_cast<int64_t>(number));
    return std::nullopt;
  }
  if (!PyLong_CheckExact(value))
    return std::nullopt;
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0)
    return std::nullopt;
  if (key.coercion == Coercion::kFloat)
    return MetricValue(static_cast<double>(number));
  return MetricValue(static_cast<int64_t>(number));
}

bool PlainMetrics::split(PyObject *values, std::vector<UserMetric> &metrics, py::object &rest) {
  PyObject *name = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(values, &position, &name, &value)) {
    const Key &key = find(name);
    bool is_none = value == Py_None || PyUnicode_CheckExact(value);
    if (key.is_reserved || (is_none && source_ == Source::kLaunch))
      continue;
    if (std::optional<MetricValue> plain =
            key.name ? plain_value(key, value) : std::optional<MetricValue>()) {
      metrics.emplace_back(*key.name, std::move(*plain));
      continue;
    }
    if (!rest)
      rest = py::reinterpret_steal<py::object>(PyDict_New());
    if (!rest || PyDict_SetItem(rest.ptr(), name, value) != 0)
      return false;
  }
  return true;
}

} // namespace proton
