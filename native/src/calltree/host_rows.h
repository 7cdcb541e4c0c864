// Names of what samples of the host add to a tree.
#pragma once

#include <string_view>

namespace proton {

/// The row below the root for host time outside of recorded work, with Python frames below it.
inline constexpr const char *kNotRecorded = "<not recorded>";
/// Time of the main thread; the root's is that of the run.
inline constexpr const char *kHostWall = "host_wall (ns)";
/// The part of it in which no device worked.
inline constexpr const char *kIdle = "idle (ns)";
/// Time of the other threads, summed.
inline constexpr const char *kOtherThreads = "other_threads (ns)";

inline bool is_host_metric(std::string_view name) {
  return name == kHostWall || name == kIdle || name == kOtherThreads;
}

} // namespace proton
