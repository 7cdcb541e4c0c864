// The tree as upstream Proton would have recorded it.
#pragma once

#include <string_view>

#include "calltree/call_path_tree.h"

namespace proton {

/// Whether it is the frame of an autotuner's trials, which upstream does not have.
bool is_trials(FrameKind kind, std::string_view name);

/// A tree of the same numbers in the shape of upstream 3.9:
///  - siblings are distinguished by their names alone; of several devices the last one stays,
///  - trials of an autotuner stand among the other launches, lines of code directly below kernels,
///  - what a launch of a graph ran comes after the other children of its scope, and captured work
///    has a frame without numbers in its old place,
///  - values that were given under capture have the frame of the kernel that would have kept them.
/// Our own columns and samples of the host are left out.
CallPathTree upstream_tree(const CallPathTree &tree);

} // namespace proton
