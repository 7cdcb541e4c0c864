#include "bindings/values/python_text.h"

namespace py = pybind11;

namespace proton {

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

} // namespace proton
