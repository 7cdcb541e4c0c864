#include "bindings/values/python_values.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <new>
#include <vector>

#include "support/error.h"

namespace py = pybind11;
namespace py = pybind11;
namespace py = pybind11;

namespace proton {
namespace {

const char *class_of(ErrorCode code) {
  switch (code) {
  case ErrorCode::kUsage:
    return "UsageError";
  case ErrorCode::kMetric:
    return "MetricError";
  case ErrorCode::kScope:
    return "ScopeError";
  case ErrorCode::kSession:
    return "SessionError";
  case ErrorCode::kFormat:
    return "ProfileFormatError";
  case ErrorCode::kOutput:
    return "OutputError";
  case ErrorCode::kUnavailable:
    return "BackendUnavailableError";
  }
  return "ProtonError";
}

void set_error(const Error &error) {
  try {
    py::object type = py::module_::import("proton_bench.errors").attr(class_of(error.code()));
    PyErr_SetString(type.ptr(), error.what());
  } catch (py::error_already_set &failed) {
    failed.restore(); // the import's own error says more than ours would
  }
}

} // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (const Error &error) {
    set_error(error);
  } catch (py::error_already_set &error) {
    error.restore();
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown native error");
  }
}

void register_error_translator() {
  py::register_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending)
        std::rethrow_exception(pending);
    } catch (const Error &error) {
      set_error(error);
    }
  });
}

PythonText::PythonText(PyObject *object, const char *what) {
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s must be a str, not %.100s", what, Py_TYPE(object)->tp_name);
    throw py::error_already_set();
  }
  Py_hash_t hash = PyObject_Hash(object);
  if (hash == -1)
    throw py::error_already_set();
  name_.hash = static_cast<uint64_t>(hash);
  Py_ssize_t size = 0;
  if (const char *bytes = PyUnicode_AsUTF8AndSize(object, &size)) {
    name_.text = {bytes, static_cast<size_t>(size)};
    return;
  }
  PyErr_Clear();
  auto encoded = py::reinterpret_steal<py::object>(
      PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace"));
  if (!encoded)
    throw py::error_already_set();
  escaped_.assign(PyBytes_AS_STRING(encoded.ptr()),
                  static_cast<size_t>(PyBytes_GET_SIZE(encoded.ptr())));
  name_.text = escaped_;
}

namespace {

void read_extent(const std::string &key, py::handle value, uint32_t (&extent)[3]) {
  auto sizes = value.cast<std::vector<uint32_t>>();
  if (sizes.empty() || sizes.size() > 3)
    throw Error(ErrorCode::kUsage, "variant '" + key + "' needs one to three sizes, not " +
                                       std::to_string(sizes.size()));
  std::fill(std::begin(extent), std::end(extent), 1u);
  std::copy(sizes.begin(), sizes.end(), std::begin(extent));
}

} // namespace

uint64_t read_hash(py::handle value) {
  if (py::isinstance<py::str>(value))
    return std::hash<std::string>{}(value.cast<std::string>());
  return value.cast<uint64_t>();
}

PythonVariant::PythonVariant(const py::object &mapping) {
  if (mapping.is_none())
    return;
  is_given_ = true;
  for (auto [key_object, value] : py::dict(mapping)) {
    auto key = key_object.cast<std::string>();
    if (key == "code_hash")
      record_.code_hash = read_hash(value);
    else if (key == "grid")
      read_extent(key, value, record_.grid);
    else if (key == "block")
      read_extent(key, value, record_.block);
    else if (key == "shared_bytes")
      record_.shared_bytes = value.cast<uint32_t>();
    else if (key == "signature")
      signature_ = value.cast<std::string>();
    else
      throw Error(ErrorCode::kUsage,
                  "unknown variant key '" + key +
                      "'; choose code_hash, grid, block, shared_bytes or signature");
  }
  if (!signature_.empty())
    record_.signature = signature_.c_str();
}

} // namespace proton
