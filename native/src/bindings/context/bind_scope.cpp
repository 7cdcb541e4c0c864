// `scope` as a C type: a call through pybind11 would cost more than the work.
#include "bindings/module/bindings.h" // first: Python.h comes before structmember.h

#include <structmember.h>

#include <cstring>
#include <utility>

#include "bindings/context/bind_tasks.h"
#include "bindings/context/scope_observer.h"
#include "bindings/values/plain_metrics.h"
#include "bindings/values/python_values.h"
#include "context/thread/host_range.h"
#include "context/thread/self_cost.h"
#include "context/thread/thread_state.h"

namespace py = pybind11;

namespace proton {
namespace {

struct ScopeObject {
  PyObject_HEAD;
  PyObject *name;
  PyObject *metrics;
  ThreadState *owner;   ///< whose stack the newest enter was on
  uint64_t scope_id;    ///< of that enter; 0: not open
  uint32_t depth;       ///< of the stack before it
  uint32_t open_count;  ///< enters that were not left: the object may nest, also across threads
  PyObject *attributes; ///< made when the program gives the object one
  PyObject *weak_references;
};

ScopeObject *as_scope(PyObject *object) { return reinterpret_cast<ScopeObject *>(object); }

/// The garbage collector tracks objects of the type itself only once they can be part of a cycle.
void track(PyObject *object) {
  if (!PyObject_GC_IsTracked(object))
    PyObject_GC_Track(object);
}

bool set_fields(PyObject *object, PyObject *name, PyObject *metrics) {
  if (!name || !PyUnicode_Check(name)) {
    PyErr_Format(PyExc_TypeError, "the name of a scope must be a str, not %.100s",
                 name ? Py_TYPE(name)->tp_name : "missing");
    return false;
  }
  ScopeObject *scope = as_scope(object);
  Py_INCREF(name);
  Py_XSETREF(scope->name, name);
  Py_INCREF(metrics);
  Py_XSETREF(scope->metrics, metrics);
  if (metrics != Py_None)
    track(object);
  return true;
}

// Memory of dead objects, linked by `attributes`: a scope costs less than a new object would.
// Guarded by Python's lock; empty in builds without it.
ScopeObject *g_spare = nullptr;
int g_spare_count = 0;
#ifdef Py_GIL_DISABLED
constexpr int kMostSpare = 0;
#else
constexpr int kMostSpare = 16;
#endif

PyObject *scope_alloc(PyTypeObject *type, Py_ssize_t) {
  ScopeObject *scope = g_spare;
  if (scope) {
    g_spare = reinterpret_cast<ScopeObject *>(scope->attributes);
    --g_spare_count;
    PyObject_Init(reinterpret_cast<PyObject *>(scope), type);
  } else if (!(scope = PyObject_GC_New(ScopeObject, type))) {
    return nullptr;
  }
  constexpr size_t kHead = sizeof(PyObject);
  std::memset(reinterpret_cast<char *>(scope) + kHead, 0, sizeof(ScopeObject) - kHead);
  return reinterpret_cast<PyObject *>(scope);
}

void scope_free(void *memory) {
  auto *scope = static_cast<ScopeObject *>(memory);
  if (g_spare_count == kMostSpare)
    return PyObject_GC_Del(memory);
  ++g_spare_count;
  scope->attributes = reinterpret_cast<PyObject *>(std::exchange(g_spare, scope));
}

PyObject *scope_new(PyTypeObject *type, PyObject *, PyObject *) {
  PyObject *object = type->tp_alloc(type, 0); // zeroed
  if (object) {
    as_scope(object)->name = PyUnicode_FromString("");
    as_scope(object)->metrics = Py_NewRef(Py_None);
  }
  return object;
}

int scope_init(PyObject *object, PyObject *args, PyObject *kwargs) {
  static const char *const kKeywords[] = {"name", "metrics", nullptr};
  PyObject *name = nullptr, *metrics = Py_None;
  if (!kwargs && PyTuple_GET_SIZE(args) == 2) { // as a subclass calls it
    name = PyTuple_GET_ITEM(args, 0);
    metrics = PyTuple_GET_ITEM(args, 1);
  } else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:scope", const_cast<char **>(kKeywords),
                                          &name, &metrics)) {
    return -1;
  }
  return set_fields(object, name, metrics) ? 0 : -1;
}

/// scope(name) and scope(name, metrics) without an intermediate tuple or dict.
PyObject *scope_vectorcall(PyObject *type, PyObject *const *args, size_t count,
                           PyObject *keywords) {
  Py_ssize_t positional = PyVectorcall_NARGS(count);
  PyObject *values[2] = {nullptr, Py_None};
  if (positional > 2) {
    PyErr_SetString(PyExc_TypeError, "scope() takes a name and metrics, nothing else");
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < positional; ++i)
    values[i] = args[i];
  Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject *keyword = PyTuple_GET_ITEM(keywords, i);
    int index = PyUnicode_CompareWithASCIIString(keyword, "name") == 0      ? 0
                : PyUnicode_CompareWithASCIIString(keyword, "metrics") == 0 ? 1
                                                                            : 2;
    if (index == 2 || index < positional) {
      PyErr_Format(PyExc_TypeError, "scope() got an unexpected argument '%U'", keyword);
      return nullptr;
    }
    values[index] = args[positional + i];
  }
  PyObject *object = scope_alloc(reinterpret_cast<PyTypeObject *>(type), 0);
  if (object && !set_fields(object, values[0], values[1]))
    Py_CLEAR(object);
  return object;
}

void abandon_scope(ScopeObject *scope);

int scope_clear(PyObject *object) {
  Py_CLEAR(as_scope(object)->metrics);
  Py_CLEAR(as_scope(object)->attributes);
  return 0;
}

int scope_traverse(PyObject *object, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(as_scope(object)->metrics);
  Py_VISIT(as_scope(object)->attributes);
  return 0;
}

void scope_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (as_scope(object)->weak_references)
    PyObject_ClearWeakRefs(object);
  abandon_scope(as_scope(object));
  Py_CLEAR(as_scope(object)->name);
  scope_clear(object);
  type->tp_free(object);
  Py_DECREF(type);
}

int scope_setattro(PyObject *object, PyObject *name, PyObject *value) {
  int result = PyObject_GenericSetAttr(object, name, value);
  if (as_scope(object)->attributes)
    track(object);
  return result;
}

PyObject *scope_attributes(PyObject *object, void *context) {
  track(object);
  return PyObject_GenericGetDict(object, context);
}

/// The place of this thread's innermost open frame with the name of a scope that was entered
/// several times; the depth of the stack if there is none.
uint32_t find_by_name(const ScopeObject *scope, ShadowStack &stack) {
  auto hash = static_cast<uint64_t>(PyObject_Hash(scope->name)); // cached: the name is a str
  for (uint32_t i = stack.depth(); i-- != 0;) {
    StackEntry &entry = stack.entry(i);
    if (entry.is_held && !entry.has_ended() && entry.name_hash == hash)
      return i;
  }
  return stack.depth();
}

/// Ends the object's newest enter, or an earlier one on this thread.
void close_scope(ScopeObject *scope) {
  if (scope->open_count == 0)
    return; // opened while no session was active
  const TimedCall call;
  bool is_entered_again = scope->open_count > 1 || scope->scope_id == 0;
  --scope->open_count;
  ThreadState &thread = this_thread();
  ShadowStack &stack = thread.stack;
  SessionState now = session_state();
  stack.settle(now);
  uint32_t index = scope->depth;
  bool is_newest = scope->scope_id != 0 && stack.find(index, scope->scope_id);
  if (!is_newest && is_entered_again)
    index = find_by_name(scope, stack);
  if (!is_newest && (!is_entered_again || index == stack.depth())) {
    if (scope->scope_id != 0)
      close_elsewhere({scope->owner, scope->depth, std::exchange(scope->scope_id, 0)});
    return;
  }
  if (is_newest)
    scope->scope_id = 0;
  close_scope(index, now);
  scopes_changed(thread);
  scope_left();
}

/// If an object dies without its exit, its scope is left to the one around it.
void abandon_scope(ScopeObject *scope) {
  if (scope->open_count == 0 || scope->scope_id == 0)
    return;
  ShadowStack &stack = this_thread().stack;
  if (!stack.find(scope->depth, scope->scope_id)) {
    close_elsewhere({scope->owner, scope->depth, scope->scope_id});
    return;
  }
  stack.entry(scope->depth).is_held = false;
  bool is_alone = true;
  for (uint32_t i = 0; i < scope->depth; ++i)
    is_alone = is_alone && !stack.entry(i).has_ended();
  if (!is_alone) // what was around it is over
    close_scope(scope->depth, session_state());
}

/// True if all of them are plain and were added.
bool add_plain(PyObject *metrics) {
  static auto *plain = new PlainMetrics(PlainMetrics::Source::kScope); // outlives the interpreter
  if (!PyDict_CheckExact(metrics))
    return false;
  std::vector<UserMetric> found;
  py::object rest;
  if (!plain->split(metrics, found, rest))
    throw py::error_already_set();
  if (!rest)
    add_metrics_at(capture_current(), found);
  return !rest;
}

bool add_in_python(PyObject *metrics) {
  static PyObject *function = nullptr; // one reference for the life of the process
  if (!function) {
    PyObject *module = PyImport_ImportModule("proton_bench.recording.context.metric");
    function = module ? PyObject_GetAttrString(module, "add_scope_metrics") : nullptr;
    Py_XDECREF(module);
  }
  PyObject *result = function ? PyObject_CallOneArg(function, metrics) : nullptr;
  Py_XDECREF(result);
  return result != nullptr;
}

/// False with Python's exception set.
bool add_scope_metrics(PyObject *metrics) {
  return guarded<bool>(false, [&] { return add_plain(metrics) || add_in_python(metrics); });
}

void enter(ScopeObject *scope, const SessionState &now) {
  const TimedCall call;
  PythonText name(scope->name, "the name of a scope");
  ThreadState &thread = thread_for_scope();
  thread.stack.settle(now);
  uint32_t depth = thread.stack.depth();
  StackEntry &entry = open_scope(name.name(), FrameKind::kScope, now);
  entry.is_held = true;
  scope->owner = &thread;
  scope->scope_id = entry.scope_id();
  scope->depth = depth;
  ++scope->open_count;
  scopes_changed(thread);
  scope_entered(scope->name, FrameKind::kScope);
}

PyObject *scope_enter(PyObject *object, PyObject *) {
  ScopeObject *scope = as_scope(object);
  SessionState now = session_state();
  if (!now.active)
    return Py_NewRef(object);
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    enter(scope, now);
    if (scope->metrics && scope->metrics != Py_None && !add_scope_metrics(scope->metrics)) {
      close_scope(scope); // __exit__ is not called when __enter__ raises
      return nullptr;
    }
    return Py_NewRef(object);
  });
}

PyObject *scope_exit(PyObject *object, PyObject *const *, Py_ssize_t) {
  close_scope(as_scope(object));
  Py_RETURN_NONE;
}

PyObject *scope_call(PyObject *object, PyObject *args, PyObject *kwargs) {
  PyObject *function = nullptr;
  if ((kwargs && PyDict_GET_SIZE(kwargs) != 0) ||
      !PyArg_UnpackTuple(args, "scope", 1, 1, &function))
    return PyErr_Occurred() ? nullptr
                            : PyErr_Format(PyExc_TypeError, "a scope decorates one function");
  return guarded<PyObject *>(nullptr, [&] {
    py::module_ scope = py::module_::import("proton_bench.recording.context.scope");
    return scope.attr("decorate")(py::handle(object), py::handle(function)).release().ptr();
  });
}

PyObject *scope_id(PyObject *object, void *) {
  uint64_t id = as_scope(object)->scope_id;
  return id == 0 ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(id);
}

PyObject *scope_name(PyObject *object, void *) { return Py_NewRef(as_scope(object)->name); }

int scope_set_name(PyObject *object, PyObject *value, void *) {
  PyObject *metrics = as_scope(object)->metrics;
  return set_fields(object, value, metrics ? metrics : Py_None) ? 0 : -1;
}

PyObject *scope_metrics(PyObject *object, void *) {
  PyObject *metrics = as_scope(object)->metrics;
  return Py_NewRef(metrics ? metrics : Py_None);
}

int scope_set_metrics(PyObject *object, PyObject *value, void *) {
  return set_fields(object, as_scope(object)->name, value ? value : Py_None) ? 0 : -1;
}

/// Calls a function of recording/context/scope_state.py.
PyObject *call_state_function(const char *name, PyObject *object, PyObject *state) {
  return guarded<PyObject *>(nullptr, [&] {
    py::object call = py::module_::import("proton_bench.recording.context.scope_state").attr(name);
    py::object result =
        state ? call(py::handle(object), py::handle(state)) : call(py::handle(object));
    return result.release().ptr();
  });
}

PyObject *scope_get_state(PyObject *object, PyObject *) {
  return call_state_function("get_state", object, nullptr);
}

PyObject *scope_reduce(PyObject *object, PyObject *) {
  return call_state_function("reduce", object, nullptr);
}

PyObject *scope_set_state(PyObject *object, PyObject *state) {
  return call_state_function("set_state", object, state);
}

PyObject *scope_repr(PyObject *object) {
  return PyUnicode_FromFormat("scope(%R)", as_scope(object)->name);
}

PyMethodDef kScopeMethods[] = {{"__enter__", scope_enter, METH_NOARGS, nullptr},
                               {"__exit__",
                                reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(scope_exit)),
                                METH_FASTCALL, nullptr},
                               {"__reduce__", scope_reduce, METH_NOARGS, nullptr},
                               {"__getstate__", scope_get_state, METH_NOARGS, nullptr},
                               {"__setstate__", scope_set_state, METH_O, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyMemberDef kMembers[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(ScopeObject, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ScopeObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef kGetters[] = {{"id", scope_id, nullptr, nullptr, nullptr},
                          {"name", scope_name, scope_set_name, nullptr, nullptr},
                          {"metrics", scope_metrics, scope_set_metrics, nullptr, nullptr},
                          {"__dict__", scope_attributes, PyObject_GenericSetDict, nullptr, nullptr},
                          {nullptr, nullptr, nullptr, nullptr, nullptr}};
char kScopeDoc[] = "scope(name, metrics=None)\n--\n\n"
                   "Names a region of the program; context manager and decorator.";
PyType_Slot kScopeSlots[] = {{Py_tp_doc, kScopeDoc},
                             {Py_tp_new, reinterpret_cast<void *>(scope_new)},
                             {Py_tp_init, reinterpret_cast<void *>(scope_init)},
                             {Py_tp_alloc, reinterpret_cast<void *>(scope_alloc)},
                             {Py_tp_free, reinterpret_cast<void *>(scope_free)},
                             {Py_tp_dealloc, reinterpret_cast<void *>(scope_dealloc)},
                             {Py_tp_traverse, reinterpret_cast<void *>(scope_traverse)},
                             {Py_tp_clear, reinterpret_cast<void *>(scope_clear)},
                             {Py_tp_setattro, reinterpret_cast<void *>(scope_setattro)},
                             {Py_tp_call, reinterpret_cast<void *>(scope_call)},
                             {Py_tp_repr, reinterpret_cast<void *>(scope_repr)},
                             {Py_tp_methods, kScopeMethods},
                             {Py_tp_members, kMembers},
                             {Py_tp_getset, kGetters},
                             {0, nullptr}};
PyType_Spec kScopeSpec = {"proton_bench._native.scope", sizeof(ScopeObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                          kScopeSlots};

} // namespace

void bind_scope(py::module_ &module) {
  auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&kScopeSpec));
  if (!type)
    throw py::error_already_set();
  // In Python 3.11 to 3.13 a spec has no slot for the vectorcall of the type itself.
  reinterpret_cast<PyTypeObject *>(type.ptr())->tp_vectorcall = scope_vectorcall;
  module.attr("scope") = type;
}

} // namespace proton
