// The distributions of a tree, as the section of a `.proton` file that is inflated on demand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calltree/metric_columns.h"

namespace proton {

/// A MessagePack list with one map per metric that has distributions; every array in it is plain
/// little-endian bytes. `row_of` gives a node's row. Empty when no metric has any.
std::string pack_distributions(const MetricColumns &metrics, const std::vector<int32_t> &row_of);

} // namespace proton
