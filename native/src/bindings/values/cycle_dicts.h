// Totals of kernels and scopes as Python values.
#pragma once

#include <pybind11/pybind11.h>

#include <span>

#include "record/cycle_record.h"

namespace proton {

pybind11::dict shown(const KernelTotals &totals);
/// One dict per scope.
pybind11::list shown(std::span<const ScopeTotals> scopes);

} // namespace proton
