// The collector of the machine without a GPU: torch operators and interpreted Triton kernels.
#pragma once

#include <cstdint>

#include "collector/collector.h"
#include "record/record_sink.h"

namespace proton {

class CpuCollector : public Collector {
public:
  /// Operators deeper than `max_depth` are not recorded; 0 records all.
  CpuCollector(RecordSink &sink, uint32_t max_depth) : sink_(sink), max_depth_(max_depth) {}
  void start() override;
  /// Ranges are complete when they end; this reports what was lost.
  void flush() override;
  void stop() override;

private:
  RecordSink &sink_;
  uint32_t max_depth_;
};

} // namespace proton
