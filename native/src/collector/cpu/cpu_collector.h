// The collector of the machine without a GPU: torch operators and interpreted Triton kernels.
#pragma once

#include <cstdint>

#include "collector/collector.h"

namespace proton {

class CpuCollector : public Collector {
public:
  explicit CpuCollector(uint32_t max_depth) : max_depth_(max_depth) {}
  void start() override;
  void flush() override {} // ranges are complete when they end
  void stop() override;

private:
  uint32_t max_depth_;
};

} // namespace proton
