// Layers: calls of modules, and code that a compiler made of several.
#include <Python.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings/module/bindings.h"
#include "bindings/values/python_values.h"
#include "bindings/values/tensor_arguments.h"
#include "context/layer/layer_range.h"
#include "context/thread/self_cost.h"
#include "context/thread/steps.h"
#include "context/thread/thread_state.h"

namespace py = pybind11;

namespace proton {
namespace {

// Names of the modules of a model, by the root that the program calls.

/// A module's name within one root: "encoder.3 (Block)"; of the root itself "Model".
struct ModuleName {
  uint64_t root = 0; ///< number of the root
  std::string shown;
  size_t qualified = 0;             ///< length of the part before the class
  const LayerPath *outer = nullptr; ///< for which `path` was looked up
  const LayerPath *path = nullptr;
};

/// Where a thread stands among modules.
struct ModulePlace {
  uint64_t root = 0;          ///< of the outermost module that runs; 0: none runs
  PyObject *module = nullptr; ///< the innermost, borrowed
};

/// Every module that was called, or lies below one. Modules are held by weak references. Names are
/// looked up once, without running code of the program. [GIL held]
class ModuleNames {
public:
  static ModuleNames &instance();

  /// The layers around a call of the module, with its own; null without memory. A module that is
  /// called outside of all others is a root, unless it is known to lie below one. `place` becomes
  /// that inside of the call.
  const LayerPath *enter(PyObject *module, ModulePlace &place, int32_t variant);
  /// Number of modules that live.
  size_t size() const { return modules_.size(); }

private:
  static constexpr size_t kMostRoots = 4;   ///< of one module
  static constexpr uint32_t kMostWalks = 8; ///< to find what was added below one module
  static constexpr int kMostLevels = 200;   ///< below one module; names of deeper ones begin anew

  struct Module {
    PyObject *reference = nullptr; ///< weak
    std::vector<ModuleName> names; ///< the newest last
    uint32_t walks = 0;

    ModuleName *find(uint64_t root);
    ModuleName &add(ModuleName name);
  };
  /// Null, with no exception, if the module allows no weak reference.
  Module *known(PyObject *module);
  ModuleName &learn(Module &known, PyObject *module, const ModulePlace &place);
  void walk(PyObject *module, const std::string &qualified, uint64_t root,
            std::unordered_set<PyObject *> &seen, int levels);
  static PyObject *forget(PyObject *address, PyObject *reference);

  std::unordered_map<PyObject *, Module> modules_;
  uint64_t newest_root_ = 0;
};

std::string text_of(PyObject *text) {
  Py_ssize_t size = 0;
  const char *bytes = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  if (bytes)
    return {bytes, static_cast<size_t>(size)};
  PyErr_Clear(); // lone surrogates
  return "?";
}

std::string_view class_of(PyObject *module) {
  std::string_view name = Py_TYPE(module)->tp_name;
  return name.substr(name.rfind('.') + 1);
}

/// Name of the module's class; of a script, that of the class which was compiled.
std::string shown_class(PyObject *module) {
  std::string_view name = class_of(module);
  if (name == "RecursiveScriptModule" || name == "TopLevelTracedModule" || name == "TracedModule") {
    py::object original =
        py::reinterpret_steal<py::object>(PyObject_GetAttrString(module, "original_name"));
    if (original && PyUnicode_Check(original.ptr()))
      return text_of(original.ptr());
    PyErr_Clear();
  }
  return std::string(name);
}

/// Whether the module only wraps the child of that name, which then has the module's place.
bool is_wrapper_of(PyObject *module, std::string_view child) {
  if (child == "_orig_mod" || child == "_fsdp_wrapped_module" ||
      child == "_checkpoint_wrapped_module")
    return true;
  std::string_view name = class_of(module);
  return child == "module" && (name == "DistributedDataParallel" || name == "DataParallel");
}

std::string shown_name(PyObject *module, const std::string &qualified) {
  return qualified.empty() ? shown_class(module) : qualified + " (" + shown_class(module) + ")";
}

/// Names and children, as a list of pairs: the program may change its own meanwhile.
py::object children_of(PyObject *module) {
  py::object held =
      py::reinterpret_steal<py::object>(PyObject_GenericGetAttr(module, py::str("_modules").ptr()));
  if (!held)
    PyErr_Clear();
  if (!held || !PyDict_Check(held.ptr()))
    return py::list();
  py::object items = py::reinterpret_steal<py::object>(PyDict_Items(held.ptr()));
  if (!items)
    throw py::error_already_set();
  return items;
}

PyObject *number(PyObject *object) { return PyLong_FromVoidPtr(object); }

ModuleName *ModuleNames::Module::find(uint64_t root) {
  for (auto each = names.rbegin(); each != names.rend(); ++each)
    if (each->root == root)
      return &*each;
  return nullptr;
}

ModuleName &ModuleNames::Module::add(ModuleName name) {
  if (names.size() >= kMostRoots)
    names.erase(names.begin());
  return names.emplace_back(std::move(name));
}

ModuleNames &ModuleNames::instance() {
  static ModuleNames *names = new ModuleNames; // modules may die after the interpreter began to
  return *names;
}

PyObject *ModuleNames::forget(PyObject *address, PyObject *reference) {
  auto &modules = instance().modules_;
  auto found = modules.find(static_cast<PyObject *>(PyLong_AsVoidPtr(address)));
  if (found != modules.end() && found->second.reference == reference) {
    modules.erase(found);
    Py_DECREF(reference);
  }
  Py_RETURN_NONE;
}

ModuleNames::Module *ModuleNames::known(PyObject *module) {
  auto found = modules_.find(module);
  if (found != modules_.end()) [[likely]]
    return &found->second;
  static PyMethodDef method{"forget", &ModuleNames::forget, METH_O, nullptr};
  auto address = py::reinterpret_steal<py::object>(number(module));
  auto callback = py::reinterpret_steal<py::object>(PyCFunction_New(&method, address.ptr()));
  PyObject *reference = callback ? PyWeakref_NewRef(module, callback.ptr()) : nullptr;
  if (!reference) {
    PyErr_Clear();
    return nullptr;
  }
  Module &made = modules_[module];
  made.reference = reference;
  return &made;
}

void ModuleNames::walk(PyObject *module, const std::string &qualified, uint64_t root,
                       std::unordered_set<PyObject *> &seen, int levels) {
  if (levels == 0 || !seen.insert(module).second)
    return; // too deep for the stack, or shared: it has the first of its names
  Module *found = known(module);
  if (!found)
    return;
  if (!found->find(root))
    found->add({root, shown_name(module, qualified), qualified.size()});
  for (py::handle each : py::reinterpret_steal<py::list>(children_of(module).release())) {
    PyObject *key = PyTuple_GET_ITEM(each.ptr(), 0), *child = PyTuple_GET_ITEM(each.ptr(), 1);
    if (child == Py_None)
      continue;
    std::string name = text_of(key);
    if (is_wrapper_of(module, name))
      walk(child, qualified, root, seen, levels - 1);
    else
      walk(child, qualified.empty() ? name : qualified + "." + name, root, seen, levels - 1);
  }
}

ModuleName &ModuleNames::learn(Module &found, PyObject *module, const ModulePlace &place) {
  std::unordered_set<PyObject *> seen;
  if (place.root == 0) {
    if (found.names.empty())
      walk(module, "", ++newest_root_, seen, kMostLevels);
    return found.names.back();
  }
  Module *around = place.module ? known(place.module) : nullptr;
  ModuleName *above = around ? around->find(place.root) : nullptr;
  if (above && around->walks < kMostWalks) { // it may be new there
    ++around->walks;
    walk(place.module, above->shown.substr(0, above->qualified), place.root, seen, kMostLevels);
    if (ModuleName *name = found.find(place.root))
      return *name;
  }
  if (found.names.empty())
    return found.add({place.root, shown_class(module), 0});
  ModuleName known_elsewhere = found.names.back();
  known_elsewhere.root = place.root;
  return found.add(std::move(known_elsewhere));
}

const LayerPath *ModuleNames::enter(PyObject *module, ModulePlace &place, int32_t variant) {
  const LayerPath *outer = current_layers();
  Module *found = known(module);
  if (!found)
    return layer_below(outer, shown_class(module), variant);
  ModuleName *name = place.root == 0 ? nullptr : found->find(place.root);
  if (!name && place.root == 0 && !found->names.empty())
    name = &found->names.back();
  if (!name) [[unlikely]]
    name = &learn(*found, module, place);
  if (!name->path || name->outer != outer || name->path->variant != variant) {
    name->outer = outer;
    name->path = layer_below(outer, name->shown, variant);
  }
  place = {name->root, module};
  return name->path;
}

// Guarded by Python's lock.
PyObject *g_function = nullptr;  ///< through which the target calls modules; null: not watched
vectorcallfunc g_call = nullptr; ///< its own

thread_local ModulePlace t_place;
thread_local std::vector<OpenLayer> t_compiled;

const LayerPath *path_of(PyObject *module, int32_t variant) noexcept {
  try {
    return ModuleNames::instance().enter(module, t_place, variant);
  } catch (...) { // no memory
    PyErr_Clear();
    return nullptr;
  }
}

/// The module is the first argument.
[[gnu::hot]] OpenLayer enter_module(std::span<PyObject *const> arguments,
                                    const SessionState &now) noexcept {
  const TimedCall call;
  int32_t variant = variant_of_call(arguments.subspan(1));
  return enter_layer(path_of(arguments[0], variant), now);
}

[[gnu::hot]] void exit_module(const OpenLayer &layer) noexcept {
  const TimedCall call;
  exit_layer(layer); // an exception stays as it is
}

[[gnu::hot]] PyObject *call_module(PyObject *function, PyObject *const *args, size_t count,
                                   PyObject *keywords) {
  SessionState now = session_state();
  if (!now.active || !now.wants_layers || PyVectorcall_NARGS(count) == 0)
    return g_call(function, args, count, keywords);
  const ModulePlace outer = t_place;
  if (now.wants_steps && outer.root == 0) { // of a model, not of its parts
    mark_step(StepMark::kLayer, class_of(args[0]));
    now = session_state();
  }
  const size_t named = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  const size_t given = static_cast<size_t>(PyVectorcall_NARGS(count)) + named;
  const OpenLayer layer = enter_module({args, given}, now);
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
  module.def("named_module_count", [] { return ModuleNames::instance().size(); });
}

} // namespace proton
