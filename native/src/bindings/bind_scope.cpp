// `scope` as a C type: a call through pybind11 would cost more than the work.
#include "bindings/bindings.h" // first: Python.h comes before structmember.h

#include <structmember.h>

#include "bindings/python_error.h"
#include "bindings/python_text.h"
#include "bindings/scope_observer.h"
#include "context/host_range.h"
#include "context/thread_state.h"

namespace py = pybind11;

namespace proton {
namespace {

struct ScopeObject {
  PyObject_HEAD;
  PyObject *name;
  PyObject *metrics;
  uint64_t scope_id;   ///< of the newest enter; 0: not open
  uint32_t depth;      ///< of the stack before that enter
  uint32_t open_count; ///< enters that were not left: the object may nest, also across threads
};

ScopeObject *as_scope(PyObject *object) { return reinterpret_cast<ScopeObject *>(object); }

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
  return true;
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
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:scope", const_cast<char **>(kKeywords), &name,
                                   &metrics))
    return -1;
  return set_fields(object, name, metrics) ? 0 : -1;
}

/// scope(name) and scope(name, metrics) without a tuple or dict in between.
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
  PyObject *object = scope_new(reinterpret_cast<PyTypeObject *>(type), nullptr, nullptr);
  if (object && !set_fields(object, values[0], values[1]))
    Py_CLEAR(object);
  return object;
}

void scope_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  Py_CLEAR(as_scope(object)->name);
  Py_CLEAR(as_scope(object)->metrics);
  type->tp_free(object);
  Py_DECREF(type);
}

/// Position of the innermost frame of this thread that an enter of this object opened, by its name
/// when the object was entered again meanwhile; the depth of the stack when there is none.
uint32_t find_frame(const ScopeObject *scope, ShadowStack &stack) {
  if (stack.depth() > scope->depth && stack.entry(scope->depth).scope_id == scope->scope_id)
    return scope->depth;
  auto hash = static_cast<uint64_t>(PyObject_Hash(scope->name)); // cached: the name is a str
  for (uint32_t i = stack.depth(); i-- != 0;) {
    StackEntry &entry = stack.entry(i);
    if (entry.kind == FrameKind::kScope && !entry.is_noop && entry.name_hash == hash)
      return i;
  }
  return stack.depth();
}

/// Closes the scope, and whatever was left open inside it.
void close_scope(ScopeObject *scope) {
  if (scope->open_count == 0)
    return; // opened while nobody listened
  --scope->open_count;
  ShadowStack &stack = this_thread().stack;
  uint32_t frame = find_frame(scope, stack);
  if (frame == stack.depth())
    return; // closed already, by exit_scope or by an enclosing scope
  if (stack.entry(frame).scope_id == scope->scope_id)
    scope->scope_id = 0;
  Situation now = situation();
  stack.pop_to(frame + 1, now);
  close_top(now);
  scope_left();
}

bool add_scope_metrics(PyObject *metrics) {
  static PyObject *function = nullptr; // one reference for the life of the process
  if (!function) {
    PyObject *module = PyImport_ImportModule("proton_bench.capture.metric");
    function = module ? PyObject_GetAttrString(module, "add_scope_metrics") : nullptr;
    Py_XDECREF(module);
  }
  PyObject *result = function ? PyObject_CallOneArg(function, metrics) : nullptr;
  Py_XDECREF(result);
  return result != nullptr;
}

PyObject *scope_enter(PyObject *object, PyObject *) {
  ScopeObject *scope = as_scope(object);
  Situation now = situation();
  if (!now.active)
    return Py_NewRef(object);
  return guarded<PyObject *>(nullptr, [&]() -> PyObject * {
    PythonText name(scope->name, "the name of a scope");
    uint32_t depth = this_thread().stack.depth();
    scope->scope_id = open_scope(name.name(), FrameKind::kScope, now).scope_id;
    scope->depth = depth;
    ++scope->open_count;
    scope_entered(scope->name, FrameKind::kScope);
    if (scope->metrics != Py_None && !add_scope_metrics(scope->metrics)) {
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
    py::object decorate = py::module_::import("proton_bench.capture.scope").attr("decorate");
    return decorate(py::handle(object), py::handle(function)).release().ptr();
  });
}

PyObject *scope_id(PyObject *object, void *) {
  uint64_t id = as_scope(object)->scope_id;
  return id == 0 ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(id);
}

PyObject *scope_repr(PyObject *object) {
  return PyUnicode_FromFormat("scope(%R)", as_scope(object)->name);
}

PyMethodDef kMethods[] = {{"__enter__", scope_enter, METH_NOARGS, nullptr},
                          {"__exit__",
                           reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(scope_exit)),
                           METH_FASTCALL, nullptr},
                          {nullptr, nullptr, 0, nullptr}};
PyMemberDef kMembers[] = {
    {"name", T_OBJECT_EX, offsetof(ScopeObject, name), READONLY, nullptr},
    {"metrics", T_OBJECT_EX, offsetof(ScopeObject, metrics), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef kGetters[] = {{"id", scope_id, nullptr, nullptr, nullptr},
                          {nullptr, nullptr, nullptr, nullptr, nullptr}};
char kDoc[] = "scope(name, metrics=None)\n--\n\n"
              "Names a region of the program; context manager and decorator.";
PyType_Slot kSlots[] = {{Py_tp_doc, kDoc},
                        {Py_tp_new, reinterpret_cast<void *>(scope_new)},
                        {Py_tp_init, reinterpret_cast<void *>(scope_init)},
                        {Py_tp_dealloc, reinterpret_cast<void *>(scope_dealloc)},
                        {Py_tp_call, reinterpret_cast<void *>(scope_call)},
                        {Py_tp_repr, reinterpret_cast<void *>(scope_repr)},
                        {Py_tp_methods, kMethods},
                        {Py_tp_members, kMembers},
                        {Py_tp_getset, kGetters},
                        {0, nullptr}};
PyType_Spec kSpec = {"proton_bench._native.scope", sizeof(ScopeObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, kSlots};

} // namespace

void bind_scope(py::module_ &module) {
  auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&kSpec));
  if (!type)
    throw py::error_already_set();
  // A spec has no slot for the vectorcall of the type itself (3.11-3.13).
  reinterpret_cast<PyTypeObject *>(type.ptr())->tp_vectorcall = scope_vectorcall;
  module.attr("scope") = type;
}

} // namespace proton
