#include "bindings/context/scope_observer.h"

#include <pybind11/stl.h>

#include <optional>
#include <vector>

#include "bindings/module/bindings.h"
#include "calltree/context_tree.h"
#include "context/thread/current.h"
#include "context/thread/thread_state.h"
#include "driver/cuda/nvtx_client.h"

namespace py = pybind11;

namespace proton {

bool g_scopes_are_observed = false;

namespace {

PyObject *g_scope_observer = nullptr; ///< may be null
NvtxClient g_nvtx;
bool g_sends_nvtx = false;
/// Depths of the stack right after the scopes that were pushed as ranges.
thread_local std::vector<uint32_t> t_pushed;

void update() { g_scopes_are_observed = g_scope_observer || g_sends_nvtx; }

/// Calls the observer. An exception of the observer must not end the target.
template <typename... Arguments> void tell(const char *format, Arguments... arguments) noexcept {
  PyObject *observer = Py_NewRef(g_scope_observer);
  PyObject *result = PyObject_CallFunction(observer, format, arguments...);
  if (!result)
    PyErr_WriteUnraisable(observer);
  Py_XDECREF(result);
  Py_DECREF(observer);
}

void push_range(PyObject *name, uint32_t depth) noexcept {
  const char *text = PyUnicode_AsUTF8(name);
  if (!text) { // lone surrogates
    PyErr_Clear();
    text = "<scope>";
  }
  try {
    t_pushed.push_back(depth);
  } catch (...) { // no memory: the scope is not sent as a range
    return;
  }
  g_nvtx.push(text);
}

/// Ends ranges of scopes that have ended, also after sending has ended.
void pop_ranges(uint32_t depth) noexcept {
  for (; !t_pushed.empty() && t_pushed.back() > depth; t_pushed.pop_back())
    g_nvtx.pop();
}

/// (depth, (name, kind, generation))
py::tuple described(uint32_t depth, ContextId id) {
  const ContextNode &frame = ContextTree::instance().node(id);
  std::string_view name = frame.name.text();
  auto text = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace"));
  if (!text)
    throw py::error_already_set();
  return py::make_tuple(depth,
                        py::make_tuple(text, static_cast<int>(frame.kind), frame.generation));
}

/// Open frames of the calling thread, outermost first. Frames below which a task began do
/// not belong to its stack and have depth 0.
py::list open_frames() {
  py::list frames;
  ShadowStack &stack = this_thread().stack;
  for (ContextId id = stack.empty_base(); id != 0; id = ContextTree::instance().node(id).parent)
    frames.insert(0, described(0, id));
  for (uint32_t i = 0; i < stack.depth(); ++i)
    if (const StackEntry &entry = stack.entry(i); !entry.is_noop)
      frames.append(described(i + 1, entry.id.load()));
  return frames;
}

} // namespace

void tell_scope_entered(PyObject *name, FrameKind kind) noexcept {
  uint32_t depth = this_thread().stack.depth();
  if (g_sends_nvtx)
    push_range(name, depth);
  if (g_scope_observer)
    tell("I(OiI)", depth, name, static_cast<int>(kind), session_state().generation);
}

void tell_scope_left() noexcept {
  uint32_t depth = this_thread().stack.depth();
  pop_ranges(depth);
  if (g_scope_observer)
    tell("IO", depth, Py_None);
}

void bind_scope_observer(py::module_ &module) {
  module.def("set_scope_observer", [](const py::object &observer) {
    PyObject *fresh = observer.is_none() ? nullptr : Py_NewRef(observer.ptr());
    Py_XSETREF(g_scope_observer, fresh);
    update();
  });
  module.def(
      "send_nvtx",
      [](const std::optional<std::string> &path) {
        g_sends_nvtx = path && g_nvtx.open(*path);
        update();
        return g_sends_nvtx;
      },
      py::arg("receiver"), py::pos_only());
  module.def("open_frames", &open_frames);
}

} // namespace proton
