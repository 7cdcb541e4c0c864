// What a profile says about the signal on which it was written.
#pragma once

#include <string>

namespace proton {

/// The encoded MessagePack map with `signal`, where it is not empty, and `end_time_ns` (real-time
/// clock) added; bytes that are not a map come back unchanged.
std::string with_signal_facts(const std::string &provenance, const std::string &signal);

} // namespace proton
