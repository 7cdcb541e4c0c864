// How busy devices were, as a section of a `.proton` file.
#pragma once

#include <cstdint>
#include <vector>

#include "calltree/call_path_tree.h"
#include "writer/bytes/msgpack_bytes.h"

namespace proton {

/// Appends the key "device_use" and its list: one map per device for the whole profile (scope nil),
/// and one per top-level scope. `devices_used` holds the DeviceTable positions of the file's
/// devices.
void pack_device_use(MsgpackBytes &out, const CallPathTree &tree,
                     const std::vector<int32_t> &devices_used);

} // namespace proton
