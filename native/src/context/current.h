// What a collector may know of the host side: whether anyone listens and where this thread stands.
#pragma once

#include <atomic>
#include <cstdint>

#include "record/record.h"

namespace proton {

/// The state of all sessions in one word, so that a hot path needs one atomic read.
struct Situation {
  EpochId epoch = 0;
  uint32_t birth = 0; ///< serial of the newest session, 24 bits
  bool active = false;
  bool wants_python = false; ///< some active session has context "python"
  bool wants_wall = false;   ///< some active session records the wall time of scopes
};

/// [any thread, noexcept]
Situation situation() noexcept;
/// Opens a new epoch. [session lock held]
void publish_situation(const Situation &next) noexcept;

/// Where the calling thread stands; epoch 0 when no session is active. [launching thread]
Capture capture_current() noexcept;

/// Source of Python call paths, set by the binding room: walks the calling thread's own frames.
using PythonSource = ContextId (*)(const Situation &) noexcept;
void set_python_source(PythonSource source) noexcept;

} // namespace proton
