// Layers: calls of modules, and code that a compiler made of several.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/context/module_names.h"
#include "bindings/module/bindings.h"
#include "bindings/values/python_error.h"
#include "bindings/values/python_text.h"
#include "collector/cpu/torch_observer.h"
#include "context/layer/layer_range.h"
#include "context/thread/self_cost.h"
#include "context/thread/thread_state.h"

namespace py = pybind11;

namespace proton {
namespace {

// Guarded by Python's lock.
PyObject *g_function = nullptr;  ///< through which the target calls modules; null: not watched
vectorcallfunc g_call = nullptr; ///< its own

thread_local ModulePlace t_place;
thread_local std::vector<OpenLayer> t_compiled;

const LayerPath *path_of(PyObject *module) noexcept {
  try {
    return ModuleNames::instance().enter(module, t_place);
  } catch (...) { // no memory
    PyErr_Clear();
    return nullptr;
  }
}

[[gnu::hot]] OpenLayer enter_module(PyObject *module, const SessionState &now) noexcept {
  const TimedCall call;
  return enter_layer(path_of(module), now);
}

[[gnu::hot]] void exit_module(const OpenLayer &layer) noexcept {
  const TimedCall call;
  exit_layer(layer); // an exception stays as it is
}

[[gnu::hot]] PyObject *call_module(PyObject *function, PyObject *const *args, size_t count,
                                   PyObject *keywords) {
  const SessionState now = session_state();
  if (!now.active || !now.wants_layers || PyVectorcall_NARGS(count) == 0)
    return g_call(function, args, count, keywords);
  const ModulePlace outer = t_place;
  const OpenLayer layer = enter_module(args[0], now);
  PyObject *result = g_call(function, args, count, keywords);
  exit_module(layer);
  t_place = outer;
  return result;
}

void set_vectorcall(PyObject *function, vectorcallfunc call) {
#if PY_VERSION_HEX >= 0x030C0000
  PyFunction_SetVectorcall(reinterpret_cast<PyFunctionObject *>(function), call);
#else
  auto *fields = reinterpret_cast<PyFunctionObject *>(function);
  fields->func_version = 0; // so that no caller jumps into its code
  fields->vectorcall = call;
#endif
}

void unwatch_modules() {
  if (!g_function)
    return;
  set_vectorcall(g_function, g_call);
  Py_CLEAR(g_function);
}

/// The function stays the same object, so that compilers which look at it see no difference. False
/// if it is not a function of Python.
bool watch_modules(const py::object &function) {
  unwatch_modules();
  if (!PyFunction_Check(function.ptr()))
    return false;
  g_call = reinterpret_cast<PyFunctionObject *>(function.ptr())->vectorcall;
  g_function = Py_NewRef(function.ptr());
  set_vectorcall(g_function, call_module);
  return true;
}

/// Forgets what the code left open because of an exception.
void drop_closed() {
  ShadowStack &stack = this_thread().stack;
  while (!t_compiled.empty()) {
    const OpenRange &range = t_compiled.back().range;
    if (!range.is_open() || stack.find(range.depth, range.scope_id))
      return;
    t_compiled.pop_back();
  }
}

/// The part of a layer's name before its class; empty for a root.
std::string_view qualified_name(std::string_view shown) {
  size_t end = shown.rfind(" (");
  return end == std::string_view::npos ? std::string_view() : shown.substr(0, end);
}

/// A name that begins with a dot is that of a layer below the one which runs the code.
std::string full_name(std::string_view name) {
  if (!name.starts_with('.'))
    return std::string(name);
  const LayerPath *around = t_compiled.empty() ? current_layers() : t_compiled.front().outer;
  std::string_view above = around ? qualified_name(around->name) : std::string_view();
  return above.empty() ? std::string(name.substr(1)) : std::string(above).append(name);
}

/// What was found for a name inside of some layers; for code that runs again and again.
struct FoundLayer {
  const LayerPath *outer = nullptr;
  const LayerPath *path = nullptr;
  std::string name;
};
constexpr size_t kFoundLayers = 256; // a power of two
thread_local std::vector<FoundLayer> t_found;

const LayerPath *find_layer(const HashedName &name) {
  const LayerPath *outer = current_layers();
  if (t_found.empty())
    t_found.resize(kFoundLayers);
  size_t hash = name.hash ^ (reinterpret_cast<uintptr_t>(outer) >> 4);
  FoundLayer &found = t_found[hash & (kFoundLayers - 1)];
  if (!found.path || found.outer != outer || found.name != name.text)
    found = {outer, layer_below(outer, full_name(name.text)), std::string(name.text)};
  return found.path;
}

PyObject *enter_layers(PyObject *, PyObject *const *args, Py_ssize_t count) {
  return guarded<PyObject *>(nullptr, [&] {
    const TimedCall call;
    const SessionState now = session_state();
    drop_closed();
    for (Py_ssize_t i = 0; i < count; ++i) {
      PythonText name(args[i], "name");
      OpenLayer layer;
      if (now.active && now.wants_layers)
        layer = enter_layer(find_layer(name.name()), now);
      t_compiled.push_back(layer);
    }
    return Py_NewRef(Py_None);
  });
}

PyObject *exit_layers(PyObject *, PyObject *count) {
  const TimedCall call;
  long left = PyLong_AsLong(count);
  if (left == -1 && PyErr_Occurred())
    return nullptr;
  for (; left > 0 && !t_compiled.empty(); --left) {
    exit_layer(t_compiled.back());
    t_compiled.pop_back();
  }
  Py_RETURN_NONE;
}

TorchObserver::Client client_of(bool is_ops) {
  return is_ops ? TorchObserver::kOpFrames : TorchObserver::kLayers;
}

PyMethodDef kLayerFunctions[] = {
    {"enter_layers", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(enter_layers)),
     METH_FASTCALL, "Opens layers on this thread, outermost first."},
    {"exit_layers", exit_layers, METH_O, "Closes the newest of them."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

void bind_layers(py::module_ &module) {
  if (PyModule_AddFunctions(module.ptr(), kLayerFunctions) != 0)
    throw py::error_already_set();
  module.def("watch_modules", &watch_modules, py::arg("function"), py::pos_only());
  module.def("unwatch_modules", &unwatch_modules);
  module.def(
      "follow_torch",
      [](bool is_ops, bool reads_scope, uint32_t node_offset, uint32_t fwd_thread_offset) {
        return TorchObserver::instance().attach(client_of(is_ops),
                                                {reads_scope, node_offset, fwd_thread_offset});
      },
      py::arg("is_ops"), py::arg("reads_scope"), py::arg("node_offset"),
      py::arg("fwd_thread_offset"), py::pos_only());
  module.def(
      "enable_torch_records",
      [](bool enabled) { return TorchObserver::instance().enable_records(enabled); }, py::kw_only(),
      py::arg("enabled"));
  module.def(
      "leave_torch", [](bool is_ops) { TorchObserver::instance().detach(client_of(is_ops)); },
      py::arg("is_ops"), py::pos_only());
  module.def("named_module_count", [] { return ModuleNames::instance().size(); });
}

} // namespace proton
