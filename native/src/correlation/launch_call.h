// Calls that launch, for timelines.
#pragma once

#include <cstdint>

#include "record/record.h"

namespace proton {

/// What a timeline needs of a launch besides its record. It exists until the launch is over, for
/// launches that a session with a timeline sees.
struct LaunchCall {
  uint64_t correlation_id = 0; ///< not 0
  uint64_t number = 0;         ///< of the launch, from 1; never used again
  int64_t called_ns = 0;       ///< CLOCK_MONOTONIC; 0: unknown
  int64_t returned_ns = 0;     ///< CLOCK_MONOTONIC; 0: unknown
  EpochId epoch = 0;
  uint32_t thread = kNoThread;
  bool awaits_return = false; ///< a collector reports when it returned
  bool has_values = false;    ///< the program said something of what it launched
  bool is_shown = false;      ///< its event was made
  bool is_over = false;       ///< only its return is missing

  bool lacks_return() const { return awaits_return && returned_ns == 0; }
};

} // namespace proton
