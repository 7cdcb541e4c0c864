// A variant given as a mapping from Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "record/record.h"

namespace proton {

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

} // namespace proton
