// How a recorded process ends: uncaught errors are shown as the interpreter shows them, and the
// exit code can be set where raising is too late.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "bindings/module/bindings.h"

namespace py = pybind11;

namespace proton {
namespace {

int g_exit_code = 0;

void leave() {
  std::fflush(nullptr);
  if (g_exit_code >= 0)
    std::exit(g_exit_code); // with the exit handlers of C, which come after Python's
  signal(-g_exit_code, SIG_DFL);
  raise(-g_exit_code);
}

/// The process ends with this code once Python is shut down, or by signal `-code`.
void exit_with(int code) {
  if (g_exit_code == 0 && Py_AtExit(leave) != 0) { // no room for one more
    std::fflush(nullptr);
    _exit(code >= 0 ? code : 128 - code);
  }
  g_exit_code = code;
}

/// Shows an uncaught error as at the end of a program, with sys.excepthook and sys.last_value.
void print_uncaught(const py::object &error) {
  py::object type = py::type::of(error);
  py::object frames = error.attr("__traceback__");
  PyErr_Restore(type.release().ptr(), py::object(error).release().ptr(), frames.release().ptr());
  PyErr_PrintEx(1);
}

} // namespace

void bind_exit(py::module_ &module) {
  module.def("exit_with", &exit_with);
  module.def("print_uncaught", &print_uncaught);
}

} // namespace proton
