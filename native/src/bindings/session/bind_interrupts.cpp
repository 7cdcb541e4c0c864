// How a recorded process ends: Ctrl-C is held back while files are written, uncaught errors are
// shown as the interpreter shows them, and the exit code can be set where raising is too late.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "bindings/module/bindings.h"
#include "session/signal_chain.h"
#include "session/watch_thread.h"

namespace py = pybind11;

namespace proton {
namespace {

constexpr int kMostPending = 100; // signals whose handlers raise, one after the other

struct SignalModule {
  py::object get, set, default_handler, default_action;
};

// Loaded before anything ends: an import at the end may run Python code.
const SignalModule &signals() {
  static const auto *module = [] {
    py::module_ found = py::module_::import("_signal");
    return new SignalModule{found.attr("getsignal"), found.attr("signal"),
                            found.attr("default_int_handler"), found.attr("SIG_DFL")};
  }();
  return *module;
}

// All under Python's lock and of the main thread.
bool g_is_held = false;
int g_interrupts = 0; ///< that came while they are held back

void set_handler(const py::object &handler) {
  signals().set(SIGINT, handler); // throws what handlers of signals raise that came before
  renew_signal_chain();
}

/// Notes each SIGINT and does nothing on it, until `release`. All of it is native: Python code may
/// raise KeyboardInterrupt wherever it stands.
class HeldInterrupts {
public:
  HeldInterrupts() : handler_(signals().get(SIGINT)) {
    // Of C code, or ignored: nothing is raised.
    if (handler_.is_none() || !(is_default() || PyCallable_Check(handler_.ptr())))
      return;
    py::cpp_function note([](const py::args &) { ++g_interrupts; });
    g_interrupts = 0;
    for (int i = 0; i < kMostPending && !g_is_held; ++i)
      try {
        set_handler(note);
        g_is_held = true;
      } catch (py::error_already_set &error) {
        if (raises() && error.matches(PyExc_KeyboardInterrupt))
          ++g_interrupts;
        else if (!pending_)
          pending_.emplace(std::move(error));
      }
    set_ending(g_is_held);
  }
  ~HeldInterrupts() {
    g_is_held = false;
    set_ending(false);
  }
  HeldInterrupts(const HeldInterrupts &) = delete;
  HeldInterrupts &operator=(const HeldInterrupts &) = delete;

  /// Whether a SIGINT is for the interpreter or the system, not for a handler of the program's.
  bool is_default() const { return raises() || handler_.equal(signals().default_action); }

  /// From now on SIGINT does what it did before, or ends the process.
  void release(bool ends) {
    if (!g_is_held)
      return;
    set_handler(ends ? signals().default_action : handler_);
    set_interrupt_is_default(!ends && raises());
    g_is_held = false;
    set_ending(false);
  }

  /// Throws what a handler of the program's raised on a signal that came before.
  void throw_pending() {
    if (pending_)
      throw std::move(*pending_);
  }

private:
  bool raises() const { return handler_.equal(signals().default_handler); }

  py::object handler_;
  std::optional<py::error_already_set> pending_;
};

bool can_hold() { return !g_is_held && gettid() == getpid(); }

/// Calls `work`; a SIGINT meanwhile acts after it.
py::object call_uninterrupted(const py::object &work) {
  if (!can_hold())
    return work();
  HeldInterrupts held;
  py::object result;
  try {
    result = work();
  } catch (...) {
    held.release(false);
    if (g_interrupts != 0)
      raise(SIGINT);
    throw;
  }
  held.release(false);
  if (g_interrupts != 0) {
    raise(SIGINT);
    if (PyErr_CheckSignals() != 0)
      throw py::error_already_set();
  }
  held.throw_pending();
  return result;
}

/// Calls `work` as the last of a process, and then `interrupted` where SIGINT came meanwhile. From
/// then on SIGINT ends the process, unless the program handles it.
void call_last(const py::object &work, const py::object &interrupted) {
  if (!can_hold()) {
    work();
    return;
  }
  HeldInterrupts held;
  bool ends = held.is_default();
  try {
    work();
  } catch (...) {
    held.release(ends);
    throw;
  }
  held.release(ends);
  if (g_interrupts != 0 && ends)
    interrupted();
  else if (g_interrupts != 0)
    raise(SIGINT);
  held.throw_pending();
}

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

void bind_interrupts(py::module_ &module) {
  signals();
  module.def("call_uninterrupted", &call_uninterrupted);
  module.def("call_last", &call_last);
  module.def("exit_with", &exit_with);
  module.def("print_uncaught", &print_uncaught);
}

} // namespace proton
