#include "bindings/scope_observer.h"

#include "bindings/bindings.h"
#include "calltree/context_tree.h"
#include "context/current.h"
#include "context/thread_state.h"

namespace py = pybind11;

namespace proton {

PyObject *g_scope_observer = nullptr;

namespace {

/// Calls the observer; what it raises must not end the target.
template <typename... Arguments> void tell(const char *format, Arguments... arguments) noexcept {
  PyObject *observer = Py_NewRef(g_scope_observer);
  PyObject *result = PyObject_CallFunction(observer, format, arguments...);
  if (!result)
    PyErr_WriteUnraisable(observer);
  Py_XDECREF(result);
  Py_DECREF(observer);
}

/// Of the calling thread: (depth, (name, kind, birth)), outermost first.
py::list open_frames() {
  py::list frames;
  ShadowStack &stack = this_thread().stack;
  for (uint32_t i = 0; i < stack.depth(); ++i) {
    const StackEntry &entry = stack.entry(i);
    if (entry.is_noop)
      continue;
    const ContextNode &frame = ContextTree::instance().node(entry.id.load());
    std::string_view name = frame.name.text();
    auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace"));
    if (!text)
      throw py::error_already_set();
    py::tuple path_frame = py::make_tuple(text, static_cast<int>(frame.kind), frame.birth);
    frames.append(py::make_tuple(i + 1, path_frame));
  }
  return frames;
}

} // namespace

void tell_scope_entered(PyObject *name, FrameKind kind) noexcept {
  tell("I(OiI)", this_thread().stack.depth(), name, static_cast<int>(kind), situation().birth);
}

void tell_scope_left() noexcept { tell("IO", this_thread().stack.depth(), Py_None); }

void bind_scope_observer(py::module_ &module) {
  module.def("set_scope_observer", [](const py::object &observer) {
    PyObject *fresh = observer.is_none() ? nullptr : Py_NewRef(observer.ptr());
    Py_XSETREF(g_scope_observer, fresh);
  });
  module.def("open_frames", &open_frames);
}

} // namespace proton
