#include "bindings/context/bind_tasks.h"

#include <cstdint>
#include <utility>

#include "bindings/module/bindings.h"
#include "bindings/values/python_values.h"

namespace py = pybind11;

namespace proton {
namespace {

// What follows lives as long as the process.
PyObject *g_path = nullptr;    ///< a ContextVar: the path of the scopes that are open in a context
PyObject *g_in_task = nullptr; ///< a function: whether a task runs on the calling thread

constexpr const char *kPath = "proton_bench path";

RunningContext running_context() noexcept {
  // Also without Python's lock: a thread alone changes its context.
  const PyThreadState *state = PyGILState_GetThisThreadState();
  return state ? RunningContext{state->context, state->context_ver} : RunningContext{};
}

/// The first field of a context, in every version of Python: `ctx_prev`.
const void *context_around(const void *context) noexcept {
  return *reinterpret_cast<void *const *>(static_cast<const char *>(context) + sizeof(PyObject));
}

constexpr TaskSource kContexts{running_context, context_around};

ContextId id_of(PyObject *path) noexcept {
  return static_cast<ContextId>(reinterpret_cast<uintptr_t>(PyCapsule_GetPointer(path, kPath)));
}

/// Keeps what stands on the calling thread's stack; None if nothing does. Null without memory.
PyObject *path_of(ShadowStack &stack) noexcept {
  const ContextId id = stack.own();
  if (id == 0 || !hold_path(id))
    return Py_NewRef(Py_None);
  PyObject *path = PyCapsule_New(reinterpret_cast<void *>(uintptr_t{id}), kPath,
                                 [](PyObject *held) { release_path(id_of(held)); });
  if (!path)
    release_path(id);
  return path;
}

void release(const TaskStacks::References &references) noexcept {
  Py_XDECREF(references.watch);
  Py_XDECREF(references.inherited);
}

/// Called when a context dies, before another object can have its address.
PyObject *context_died(PyObject *address, PyObject *) {
  const void *context = PyLong_AsVoidPtr(address);
  for_each_thread([&](ThreadState &thread) {
    if (thread.tasks.are_there())
      release(thread.tasks.drop(thread, context));
  });
  Py_RETURN_NONE;
}

/// Gives a context frames of its own: below `inherited`, or where the calling thread stands.
void add_task(ThreadState &thread, PyObject *context, py::object inherited) {
  static PyMethodDef method{"context_died", context_died, METH_O, nullptr};
  auto address = py::reinterpret_steal<py::object>(PyLong_FromVoidPtr(context));
  auto callback = py::reinterpret_steal<py::object>(
      address ? PyCFunction_New(&method, address.ptr()) : nullptr);
  auto watch = py::reinterpret_steal<py::object>(
      callback ? PyWeakref_NewRef(context, callback.ptr()) : nullptr);
  if (!watch)
    throw py::error_already_set();
  ContextId base = inherited ? id_of(inherited.ptr()) : thread.stack.own();
  thread.tasks.add(thread, context, base, {watch.ptr(), inherited.ptr()});
  watch.release();
  inherited.release();
}

/// The path that a value of the variable stands for; null: none. Steals the reference.
py::object as_path(PyObject *value) {
  auto path = py::reinterpret_steal<py::object>(value);
  return path && PyCapsule_CheckExact(value) ? path : py::object();
}

py::object inherited_path() {
  PyObject *value = nullptr;
  if (PyContextVar_Get(g_path, nullptr, &value) != 0)
    throw py::error_already_set();
  return as_path(value);
}

/// Whether `set_base` says where the thread stands: the context may be that of other work.
bool has_base(ThreadState &thread) noexcept {
  return !thread.tasks.on_stack() && thread.stack.empty_base() != 0;
}

bool in_task() {
  auto result = py::reinterpret_steal<py::object>(g_in_task ? PyObject_CallNoArgs(g_in_task)
                                                            : Py_NewRef(Py_False));
  if (!result)
    throw py::error_already_set();
  return result.ptr() == Py_True;
}

/// What a context does on this thread lands below the scopes in which it was made; None is the one
/// that runs.
PyObject *begin_below(PyObject *, PyObject *context) {
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    static PyObject *get = PyUnicode_InternFromString("get");
    const bool runs = context == Py_None;
    py::object path =
        runs ? inherited_path() : as_path(PyObject_CallMethodOneArg(context, get, g_path));
    if (!path && PyErr_Occurred())
      return nullptr;
    ThreadState &thread = this_thread();
    if (runs)
      context = running_state()->context;
    if (path && !thread.tasks.has(context))
      add_task(thread, context, std::move(path));
    Py_RETURN_NONE;
  });
}

/// The path of the scopes that are open in the running context; None outside of tasks.
PyObject *path_of_task(PyObject *, PyObject *) {
  return guarded<PyObject *>(nullptr, [] {
    if (ThreadState &thread = this_thread(); has_base(thread))
      return path_of(thread.stack);
    py::object path = inherited_path();
    return path ? path.release().ptr() : Py_NewRef(Py_None);
  });
}

/// Sets below which path this thread stands without scopes of its own: one of `path_of_task`, or a
/// number that an earlier call returned.
PyObject *set_base(PyObject *, PyObject *base) {
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    unsigned long id = PyCapsule_CheckExact(base) ? id_of(base) : PyLong_AsUnsignedLong(base);
    if (PyErr_Occurred())
      return nullptr;
    ShadowStack &stack = this_thread().stack;
    return PyLong_FromUnsignedLong(stack.set_base(static_cast<ContextId>(id), session_state()));
  });
}

PyMethodDef kTaskFunctions[] = {
    {"begin_below", begin_below, METH_O, "Has a context run below the scopes of its creator."},
    {"path_of_task", path_of_task, METH_NOARGS, "Path of the scopes of this context, or None."},
    {"set_base", set_base, METH_O, "Sets the path below which this thread stands."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

void check_task(ThreadState &thread) {
  const PyThreadState *state = running_state();
  thread.tasks.checked = state->context_ver;
  PyObject *context = state->context;
  if (!context || thread.tasks.has(context))
    return;
  py::object inherited = has_base(thread) ? py::object() : inherited_path();
  if (inherited || in_task())
    add_task(thread, context, std::move(inherited));
}

void tell_task(ThreadState &thread) noexcept {
  const PyThreadState *state = running_state();
  if (!state->context || thread.tasks.on_stack() != state->context)
    return; // what began below this context learns it from the next scope
  const TaskStacks::References gone = thread.tasks.drop_empty(thread);
  PyObject *path = gone.watch ? Py_NewRef(Py_None) : path_of(thread.stack);
  PyObject *token = path ? PyContextVar_Set(g_path, path) : nullptr;
  if (!token)
    PyErr_Clear(); // no memory
  Py_XDECREF(token);
  Py_XDECREF(path);
  release(gone);
}

void bind_tasks(py::module_ &module) {
  g_path = PyContextVar_New("proton_bench_path", nullptr);
  if (!g_path || PyModule_AddFunctions(module.ptr(), kTaskFunctions) != 0)
    throw py::error_already_set();
  module.def("set_task_check",
             [](const py::object &in_task) { g_in_task = py::object(in_task).release().ptr(); });
  set_task_source(&kContexts);
}

} // namespace proton
