// Chrome's trace format for scopes inside kernels, as upstream writes it, in true nanoseconds.
#pragma once

#include <string>
#include <vector>

#include "calltree/call_path_tree.h"
#include "calltree/scope_timeline.h"
#include "record/device.h"

namespace proton {

/// One `X` event per scope, in a lane of its warp, and, unless upstream's form is wanted, one per
/// program in a lane of its processor.
std::string write_scope_trace(const CallPathTree &tree, const ScopeTimeline &timeline,
                              const std::vector<Device> &devices, bool upstream_shape);

} // namespace proton
