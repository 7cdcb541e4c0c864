// The collector of AMD GPUs through roctracer, which its vendor has deprecated.
#pragma once

#include "collector/collector.h"
#include "collector/hip/hip_facts.h"
#include "collector/hip/hip_options.h"
#include "record/record_sink.h"

namespace proton {

class RoctracerCollector : public Collector {
public:
  RoctracerCollector(RecordSink &sink, HipOptions options)
      : sink_(sink), options_(std::move(options)) {}
  ~RoctracerCollector() override;
  RoctracerCollector(const RoctracerCollector &) = delete;
  RoctracerCollector &operator=(const RoctracerCollector &) = delete;

  void start() override;
  void flush() override;
  void stop() override;
  /// Known after the first start.
  HipFacts facts() const;

private:
  RecordSink &sink_;
  HipOptions options_;
  bool is_running_ = false;
};

} // namespace proton
