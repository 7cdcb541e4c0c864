// The collector of what threads of the program do on the host: samples of their Python frames.
#pragma once

#include <cstdint>

#include "collector/collector.h"
#include "record/record_sink.h"

namespace proton {

/// Samples all threads from a thread of its own. One of them at most runs in a process. A sample
/// that comes late stands for all the time since the one before, so that no time is lost.
class HostSampler : public Collector {
public:
  /// About so often, at times that no loop of the program falls in step with. The time of the
  /// calling thread is that of the run. [GIL held]
  HostSampler(RecordSink &sink, int64_t period_ns);
  ~HostSampler() override { stop(); }

  /// Throws Error(kUnavailable). [GIL held]
  void start() override;
  /// Takes a sample now, and returns when it is handed over, or after a second.
  void flush() override;
  /// Does nothing if another one runs.
  void stop() override;

private:
  RecordSink &sink_;
  int64_t period_ns_;
};

} // namespace proton
