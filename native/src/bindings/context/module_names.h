// Names of the modules of a model, by the root that the program calls.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "context/layer/layer_range.h"

namespace proton {

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
  const LayerPath *enter(PyObject *module, ModulePlace &place);
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

} // namespace proton
