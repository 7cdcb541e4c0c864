// The one walk behind `.hatchet`, its compact form and `.hatchet_msgpack`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calltree/call_path_tree.h"
#include "record/device.h"
#include "writer/tree/emitter.h"

namespace proton {

/// Deepest level written (ROOT is level 0): Python's json gives up near 496, msgpack near 510.
inline constexpr uint32_t kMaxHatchetDepth = 480;

/// Writes the whole tree to the emitter and returns the file. Siblings equal in name, kind and
/// device become one node with summed metrics (of a property, the last); levels below
/// kMaxHatchetDepth are summed into their ancestor there. ROOT holds a 0 for every scalar inclusive
/// metric, as a hint for readers, and no other value; with `states_aggregations` it also has a key
/// "aggregations", if hints are not enough.
std::string write_hatchet(const CallPathTree &tree, const std::vector<Device> &devices,
                          Emitter &emitter, bool states_aggregations = true);

/// Whether write_hatchet folds levels of this tree, so that users should be warned.
bool folds_in_hatchet(const CallPathTree &tree);

} // namespace proton
