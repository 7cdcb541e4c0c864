// A session of the roctracer backend on the doubles of AMD's libraries.
#pragma once

#include <utility>

#include "collector/hip/amd_options.h"
#include "collector/recorded_session.h"
#include "collector/roctracer/roctracer_collector.h"
#include "fake_amd/control.h"

namespace proton {

inline HipOptions roctracer_options() { return amd_options("PROTON_BENCH_ROCTRACER_LIB"); }

class RoctracerSession : public RecordedSession<RoctracerCollector> {
public:
  explicit RoctracerSession(HipOptions options = roctracer_options())
      : RecordedSession(std::move(options)) {}
};

} // namespace proton
