// A session of the rocprofiler backend on the doubles of AMD's libraries.
#pragma once

#include <utility>

#include "collector/hip/amd_options.h"
#include "collector/recorded_session.h"
#include "collector/rocprofiler/rocprofiler_collector.h"
#include "fake_amd/control.h"

namespace proton {

inline HipOptions rocprofiler_options() { return amd_options("PROTON_BENCH_ROCPROFILER_LIB"); }

class RocprofilerSession : public RecordedSession<RocprofilerCollector> {
public:
  explicit RocprofilerSession(HipOptions options = rocprofiler_options())
      : RecordedSession(std::move(options)) {}
};

} // namespace proton
