#include "bindings/context/module_names.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace py = pybind11;

namespace proton {
namespace {

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

} // namespace

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

const LayerPath *ModuleNames::enter(PyObject *module, ModulePlace &place) {
  const LayerPath *outer = current_layers();
  Module *found = known(module);
  if (!found)
    return layer_below(outer, shown_class(module));
  ModuleName *name = place.root == 0 ? nullptr : found->find(place.root);
  if (!name && place.root == 0 && !found->names.empty())
    name = &found->names.back();
  if (!name) [[unlikely]]
    name = &learn(*found, module, place);
  if (!name->path || name->outer != outer) {
    name->outer = outer;
    name->path = layer_below(outer, name->shown);
  }
  place = {name->root, module};
  return name->path;
}

} // namespace proton
