#include <Python.h>

#include "context/python/python_thread_name.h"

namespace proton {

/// Works with several interpreters, unlike PyGILState_Check.
bool holds_interpreter() noexcept {
  if (!Py_IsInitialized())
    return false;
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked() != nullptr;
#elif PY_VERSION_HEX >= 0x030C0000
  return _PyThreadState_UncheckedGet() != nullptr;
#else
  // The state of whichever thread holds the lock.
  PyThreadState *current = _PyThreadState_UncheckedGet();
  return current != nullptr && current == PyGILState_GetThisThreadState();
#endif
}

namespace {

/// Owns a reference; null after a failure.
class Owned {
public:
  explicit Owned(PyObject *object) : object_(object) {}
  ~Owned() { Py_XDECREF(object_); }
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  PyObject *get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

private:
  PyObject *object_;
};

/// Keeps the pending exception while other calls raise and clear theirs.
class PendingException {
public:
#if PY_VERSION_HEX >= 0x030C0000
  PendingException() : value_(PyErr_GetRaisedException()) {}
  ~PendingException() { PyErr_SetRaisedException(value_); }
#else
  PendingException() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~PendingException() { PyErr_Restore(type_, value_, trace_); }
#endif
  PendingException(const PendingException &) = delete;
  PendingException &operator=(const PendingException &) = delete;

private:
#if PY_VERSION_HEX < 0x030C0000
  PyObject *type_ = nullptr;
  PyObject *trace_ = nullptr;
#endif
  PyObject *value_ = nullptr;
};

std::string name_of(PyObject *thread) {
  if (Py_TYPE(thread)->tp_getattro != PyObject_GenericGetAttr)
    return {}; // a class of the program that would run code
  Owned name(PyObject_GetAttrString(thread, "_name"));
  if (!name || !PyUnicode_Check(name.get()))
    return {};
  Py_ssize_t size = 0;
  const char *text = PyUnicode_AsUTF8AndSize(name.get(), &size);
  return text == nullptr ? std::string() : std::string(text, static_cast<size_t>(size));
}

} // namespace

std::string python_thread_name() {
  if (!holds_interpreter())
    return {};
  PendingException pending;
  PyObject *modules = PySys_GetObject("modules"); // borrowed; null while the interpreter ends
  Owned module(modules != nullptr ? PyMapping_GetItemString(modules, "threading") : nullptr);
  std::string name;
  if (module && PyModule_Check(module.get())) {
    Owned threads(PyObject_GetAttrString(module.get(), "_active"));
    Owned number(PyLong_FromUnsignedLong(PyThread_get_thread_ident()));
    bool is_known = threads && PyDict_CheckExact(threads.get()) && number;
    Owned thread(is_known ? PyObject_GetItem(threads.get(), number.get()) : nullptr);
    if (thread)
      name = name_of(thread.get());
  }
  PyErr_Clear();
  return name;
}

} // namespace proton
