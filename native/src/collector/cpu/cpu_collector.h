// The collector of the machine without a GPU: torch operators and interpreted Triton kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "collector/collector.h"
#include "collector/cpu/perf_counter.h"
#include "record/record_sink.h"

namespace proton {

class CpuCollector : public Collector {
public:
  /// Operators deeper than `max_depth` are not recorded; 0 records all. The event, if any, is
  /// counted inside of operators, kernels and scopes.
  CpuCollector(RecordSink &sink, uint32_t max_depth, std::optional<PerfEvent> event = {})
      : sink_(sink), max_depth_(max_depth), event_(std::move(event)) {}
  void start() override;
  /// Ranges are complete when they end; this reports what was lost.
  void flush() override;
  void stop() override;

private:
  RecordSink &sink_;
  uint32_t max_depth_;
  std::optional<PerfEvent> event_;
};

} // namespace proton
