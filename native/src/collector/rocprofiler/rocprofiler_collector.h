// The collector of AMD GPUs: kernels, copies, graphs and ranges through rocprofiler-sdk.
#pragma once

#include "collector/collector.h"
#include "collector/hip/hip_options.h"
#include "record/record_sink.h"

namespace proton {

class RocprofilerCollector : public Collector {
public:
  RocprofilerCollector(RecordSink &sink, HipOptions options)
      : sink_(sink), options_(std::move(options)) {}
  ~RocprofilerCollector() override;
  RocprofilerCollector(const RocprofilerCollector &) = delete;
  RocprofilerCollector &operator=(const RocprofilerCollector &) = delete;

  /// The first start of a process registers with the library, which must be before HIP starts.
  void start() override;
  void flush() override;
  /// The library goes on listening, and what it tells is left aside, but for graphs.
  void stop() override;
  /// Known after the first start.
  HipFacts facts() const;

private:
  RecordSink &sink_;
  HipOptions options_;
  bool is_running_ = false;
};

} // namespace proton
