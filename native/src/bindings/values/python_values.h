// Turns native errors into the classes of proton_bench.errors.
#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "collector/gpu/devices/device_facts.h"
#include "context/thread/shadow_stack.h"
#include "driver/shared_library.h"
#include "record/record.h"
#include "support/error.h"

namespace proton {

/// Sets the Python exception for the error being handled. [GIL held, inside a catch block]
void set_python_error() noexcept;
/// Registers the same mapping for functions bound through pybind11.
void register_error_translator();

/// Runs `body` for a raw C entry point: an exception becomes Python's and `failed` is returned.
template <typename Result, typename Body> Result guarded(Result failed, Body &&body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return failed;
  }
}

// Text of Python strings for the native side, with the hash that Python has cached.

/// Views a str as UTF-8 while it lives; lone surrogates are escaped in a copy.
class PythonText {
public:
  /// Throws TypeError if `object` is not a str; `what` names the argument.
  PythonText(PyObject *object, const char *what);
  HashedName name() const { return name_; }
  std::string_view text() const { return name_.text; }

private:
  HashedName name_;
  std::string escaped_;
};

// A variant given as a mapping from Python.

/// Hashes of codes come as numbers, or as the hexadecimal text that compilers print.
uint64_t read_hash(pybind11::handle value);

/// Reads {"code_hash", "grid", "block", "shared_bytes", "signature"}, or None for no variant.
/// Throws Error(kUsage) for unknown keys or values that do not fit. The record lives as long as
/// this.
class PythonVariant {
public:
  explicit PythonVariant(const pybind11::object &mapping);
  const VariantRecord *record() const { return is_given_ ? &record_ : nullptr; }

private:
  bool is_given_ = false;
  VariantRecord record_;
  std::string signature_;
};

// Devices that a collector saw, for Python.

inline pybind11::list list_devices(const std::map<int32_t, DeviceFacts::Facts> &devices) {
  pybind11::list listed;
  for (const auto &[index, device] : devices) {
    pybind11::dict entry;
    entry["index"] = index;
    entry["name"] = device.driver.name;
    entry["uuid"] = device.driver.uuid;
    entry["tick_ns"] = device.tick_ns;
    listed.append(entry);
  }
  return listed;
}

// Places of a vendor's library, as Python lists them.

/// Path, origin, and whether the library counts only if it is loaded already.
using ListedCandidate = std::tuple<std::string, std::string, bool>;

inline std::vector<LibraryCandidate> make_candidates(const std::vector<ListedCandidate> &listed) {
  std::vector<LibraryCandidate> candidates;
  for (const auto &[path, origin, only_if_loaded] : listed)
    candidates.push_back({path, origin, only_if_loaded});
  return candidates;
}

} // namespace proton
