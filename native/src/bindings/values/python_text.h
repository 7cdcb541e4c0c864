// Text of Python strings for the native side, with the hash that Python has cached.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "context/thread/shadow_stack.h"

namespace proton {

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

} // namespace proton
