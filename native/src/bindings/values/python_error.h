// Turns native errors into the classes of proton_bench.errors.
#pragma once

#include <pybind11/pybind11.h>

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

} // namespace proton
