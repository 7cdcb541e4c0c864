#include "bindings/values/python_error.h"

#include <new>

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

} // namespace proton
