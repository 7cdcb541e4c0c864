// The watching thread, and what it asks of the interpreter.
#include <pybind11/stl.h>

#include <cstdio>

#include "bindings/module/bindings.h"
#include "session/output_guard.h"
#include "session/signal_chain.h"
#include "session/watch_thread.h"

namespace py = pybind11;

namespace proton {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

bool can_run_python() {
  if (!Py_IsInitialized())
    return false;
#if PY_VERSION_HEX >= 0x030D0000
  return !Py_IsFinalizing();
#else
  return !_Py_IsFinalizing();
#endif
}

void flush_stream(const char *name) {
  PyObject *stream = PySys_GetObject(name); // borrowed
  if (!stream || stream == Py_None)
    return;
  PyObject *done = PyObject_CallMethod(stream, "flush", nullptr);
  Py_XDECREF(done);
  PyErr_Clear();
}

// In the plain C API: objects with destructors would stand in the way when a shutdown of the
// interpreter ends this thread.
void flush_and_freeze() {
  if (can_run_python()) {
    PyGILState_Ensure(); // never given back: the process is about to end
    flush_stream("stdout");
    flush_stream("stderr");
  }
  std::fflush(nullptr);
}

int set_flag(void *flag) {
  static_cast<std::atomic<bool> *>(flag)->store(true, std::memory_order_release);
  return 0;
}

void ask_main_thread(std::atomic<bool> *flag) {
  // Pending calls run where signals are handled: between two steps of the main thread.
  if (!can_run_python() || Py_AddPendingCall(set_flag, flag) != 0)
    flag->store(true, std::memory_order_release);
}

void start_watching(double interval_s, bool ends_by_signal) {
  WatchOptions options;
  options.interval_ns = static_cast<int64_t>(interval_s * 1e9);
  options.ending = ends_by_signal ? Ending::kSignal : Ending::kExitCode;
  start_watch(options);
}

void write_outputs(bool is_quiet) {
  auto tell = [](const WriteReport &report) { say_report(report, "exit"); };
  auto tell_errors = [](const WriteReport &report) { say_report(report, "exit", true); };
  OutputGuard::instance().write_all("", false, is_quiet ? tell_errors : +tell);
}

} // namespace

void bind_watch(py::module_ &module) {
  set_host_actions({flush_and_freeze, ask_main_thread});
  module.def("protected_count", [] { return OutputGuard::instance().count(); }, Unlocked());
  module.def("write_outputs", &write_outputs, Unlocked());
  module.def("start_watch", &start_watching, Unlocked());
  module.def("stop_watch", &stop_watch, Unlocked());
  module.def("is_watching", &is_watching);
  module.def("renew_signal_chain", &renew_signal_chain, Unlocked());
  module.def("set_interrupt_is_default", &set_interrupt_is_default);
}

} // namespace proton
