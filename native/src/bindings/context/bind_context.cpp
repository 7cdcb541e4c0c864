// The calling thread's scopes, ops and states as plain C functions.
#include <pthread.h>

#include <vector>

#include "bindings/context/bind_tasks.h"
#include "bindings/context/scope_observer.h"
#include "bindings/module/bindings.h"
#include "bindings/values/python_values.h"
#include "calltree/context_tree.h"
#include "context/python/python_frames.h"
#include "context/python/python_lock.h"
#include "context/thread/host_range.h"
#include "context/thread/self_cost.h"
#include "context/thread/thread_state.h"

namespace py = pybind11;

namespace proton {
namespace {

PyObject *enter_frame(PyObject *name_object, FrameKind kind) {
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    const TimedCall call;
    PythonText name(name_object, "name");
    SessionState now = session_state();
    ThreadState &thread = thread_for_scope();
    if (!now.active) {
      thread.stack.push_noop(name.name(), kind);
      Py_RETURN_NONE;
    }
    bool is_scope = kind != FrameKind::kKernel;
    const StackEntry &entry =
        is_scope ? open_scope(name.name(), kind, now) : thread.stack.push(name.name(), kind, now);
    uint64_t id = entry.scope_id(); // before others run
    scopes_changed(thread);
    if (is_scope)
      scope_entered(name_object, kind);
    return PyLong_FromUnsignedLongLong(id);
  });
}

std::string name_of(const StackEntry &entry) {
  if (entry.is_noop)
    return "(a scope opened while no session was active)";
  return std::string(ContextTree::instance().node(entry.id.load()).name.text());
}

PyObject *exit_frame(PyObject *name_object, const char *function) {
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    const TimedCall call;
    ThreadState &thread = this_thread();
    SessionState now = session_state();
    thread.stack.settle(now);
    close_operators(now);
    std::optional<uint32_t> index = innermost_of_program();
    if (!index) {
      if (!now.active)
        Py_RETURN_NONE;
      throw Error(ErrorCode::kScope, std::string(function) +
                                         " without a matching enter on this thread; "
                                         "each exit needs one enter before it");
    }
    StackEntry &entry = thread.stack.entry(*index);
    bool is_named = name_object && name_object != Py_None;
    if (entry.kind == FrameKind::kTest && !is_named)
      throw Error(ErrorCode::kScope, std::string(function) +
                                         " without a matching enter in this test; the frame of "
                                         "the test itself is left by the test runner");
    if (is_named) {
      PythonText name(name_object, "name");
      if (name.name().hash != entry.name_hash)
        throw Error(ErrorCode::kScope, "Scope name mismatch: " + std::string(name.text()) +
                                           " != " + name_of(entry) +
                                           "; exit scopes in the reverse order of entering");
    }
    uint64_t id = entry.scope_id();
    close_frame(*index, now);
    scopes_changed(thread);
    scope_left();
    if (id == 0) // opened while no session was there
      Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(id);
  });
}

PyObject *enter_scope(PyObject *, PyObject *const *args, Py_ssize_t count) {
  if (count < 1 || count > 2)
    return PyErr_Format(PyExc_TypeError, "enter_scope() takes a name and a kind");
  auto kind = FrameKind::kScope;
  if (count == 2) {
    long wanted = PyLong_AsLong(args[1]);
    if (wanted == -1 && PyErr_Occurred())
      return nullptr;
    if (wanted != static_cast<long>(FrameKind::kScope) &&
        wanted != static_cast<long>(FrameKind::kTest))
      return PyErr_Format(PyExc_ValueError, "kind must be KIND_SCOPE or KIND_TEST");
    kind = static_cast<FrameKind>(wanted);
  }
  return enter_frame(args[0], kind);
}

PyObject *exit_scope(PyObject *, PyObject *const *args, Py_ssize_t count) {
  return exit_frame(count == 0 ? nullptr : args[0], "exit_scope");
}

PyObject *enter_op(PyObject *, PyObject *name) {
  // The op names the launch inside it, so it serves as the kernel's own frame.
  PyObject *id = enter_frame(name, FrameKind::kKernel);
  if (!id)
    return nullptr;
  Py_DECREF(id);
  Py_RETURN_NONE;
}

PyObject *exit_op(PyObject *, PyObject *const *args, Py_ssize_t count) {
  PyObject *id = exit_frame(count == 0 ? nullptr : args[0], "exit_op");
  if (!id)
    return nullptr;
  Py_DECREF(id);
  Py_RETURN_NONE;
}

PyObject *enter_state(PyObject *, PyObject *name_object) {
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    PythonText name(name_object, "name");
    thread_for_scope().stack.enter_state(name.text(), session_state());
    Py_RETURN_NONE;
  });
}

PyObject *exit_state(PyObject *, PyObject *) {
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    ThreadState &thread = this_thread();
    thread.stack.exit_state(session_state());
    scopes_changed(thread);
    Py_RETURN_NONE;
  });
}

PyObject *number_scope(PyObject *, PyObject *) {
  uint64_t id = this_thread().stack.number_noop();
  return id == 0 ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(id);
}

PyObject *entered_scopes(PyObject *, PyObject *) {
  return guarded<PyObject *>(nullptr, [] {
    ShadowStack &stack = this_thread().stack;
    py::list listed;
    for (uint32_t i = 0; i < stack.depth(); ++i) {
      const StackEntry &entry = stack.entry(i);
      bool is_entered = entry.kind == FrameKind::kScope && !entry.is_held && !entry.has_ended();
      if (is_entered && entry.scope_id() != 0)
        listed.append(py::make_tuple(entry.scope_id(), entry.is_noop ? "" : name_of(entry)));
    }
    return listed.release().ptr();
  });
}

PyObject *thread_depth(PyObject *, PyObject *) {
  return PyLong_FromUnsignedLong(this_thread().stack.depth());
}

PyCFunction fastcall(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(function));
}

PyObject *state_depth(PyObject *, PyObject *) {
  return PyLong_FromUnsignedLong(this_thread().stack.state_depth());
}

PyMethodDef kContextFunctions[] = {
    {"enter_scope", fastcall(enter_scope), METH_FASTCALL, "Opens a scope on this thread."},
    {"exit_scope", fastcall(exit_scope), METH_FASTCALL, "Closes the newest scope of this thread."},
    {"enter_op", enter_op, METH_O, "Opens the frame that names the next launch."},
    {"exit_op", fastcall(exit_op), METH_FASTCALL, "Closes the frame of enter_op."},
    {"number_scope", number_scope, METH_NOARGS, "Numbers the scope just opened, if it has none."},
    {"entered_scopes", entered_scopes, METH_NOARGS, "Number and name of scopes to be exited."},
    {"enter_state", enter_state, METH_O, "Sets the state of this thread."},
    {"exit_state", exit_state, METH_NOARGS, "Restores the outer state of this thread."},
    {"state_depth", state_depth, METH_NOARGS, "Number of nested states of this thread."},
    {"thread_depth", thread_depth, METH_NOARGS, "Number of open frames of this thread."},
    {nullptr, nullptr, 0, nullptr}};

// Both walks over Python frames side by side, so that tests can compare them.

py::list listed(const std::vector<Site> &sites) {
  py::list frames;
  for (const Site &site : sites) {
    auto *code = static_cast<PyObject *>(const_cast<void *>(site.code));
    frames.append(py::make_tuple(py::reinterpret_borrow<py::object>(code), site.offset));
  }
  return frames;
}

/// Both walks at one instruction of the caller; the second sees what the first left.
py::dict list_frames() {
  std::vector<Site> sites;
  py::dict walks;
#if PROTON_BENCH_RAW_FRAMES
  raw_frames::list(sites);
  std::erase_if(sites, raw_frames::is_hidden);
  walks["raw"] = listed(sites);
#endif
  public_frames::list(sites);
  walks["public"] = listed(sites);
  return walks;
}

void bind_python_frames(py::module_ &module) {
  module.def("python_frames", &list_frames);
  // Registered early and therefore called late: after the last profiles are written.
  py::module_::import("atexit").attr("register")(py::cpp_function([] {
    set_task_source(nullptr); // the interpreter frees the states of threads that still run
    end_python_calls();
  }));
  static const int forks = pthread_atfork(nullptr, nullptr, forget_python_calls_after_fork);
  static_cast<void>(forks);
  module.attr("python_frame_walk") = python_frames::kNeedsGil ? "public" : "raw";
}

} // namespace

void bind_context(py::module_ &module) {
  bind_python_frames(module);
  if (PyModule_AddFunctions(module.ptr(), kContextFunctions) != 0)
    throw py::error_already_set();
}

} // namespace proton
