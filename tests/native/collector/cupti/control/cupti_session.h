// A session of the cupti backend on the double of libcupti, and what it recorded.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>

#include "collector/cupti/control/cupti_collector.h"
#include "collector/recorded_session.h"
#include "control.h"

namespace proton {

inline CuptiOptions double_options() {
  CuptiOptions options;
  options.candidates = {{std::getenv("PROTON_BENCH_CUPTI_LIB"), "test", false}};
  options.flush_period_ms = 0;
  return options;
}

inline std::string error_of_start(const CuptiOptions &options = double_options()) {
  return error_of_starting<CuptiCollector>(options);
}

class CuptiSession : public RecordedSession<CuptiCollector> {
public:
  explicit CuptiSession(CuptiOptions options = double_options())
      : RecordedSession(std::move(options)) {}
};

} // namespace proton
