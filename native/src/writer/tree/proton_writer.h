// The file of record, `.proton`: one MessagePack map of little-endian columns.
//
//   {"schema": "proton_bench.profile", "version": [1, 0], "partial", "provenance", "devices",
//    "strings", "rows", "parents", "frames", "kinds", "device", "variant", "variants", "metrics",
//    "distributions", "dropped"}
//
// Rows stand in pre-order. A column is {"dtype", "codec": "raw"|"zlib", "size", "bytes"}; "size"
// counts the bytes before compression.
#pragma once

#include <string>
#include <vector>

#include "calltree/call_path_tree.h"
#include "record/device.h"
#include "writer/tree/profile_writer.h"

namespace proton {

/// The whole file. Throws Error(kFormat) if `facts.provenance` is not a MessagePack map, and
/// Error(kOutput) if the tree is too large for the format.
std::string write_proton(const CallPathTree &tree, const std::vector<Device> &devices,
                         const FileFacts &facts);

} // namespace proton
