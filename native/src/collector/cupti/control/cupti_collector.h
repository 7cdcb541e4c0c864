// The collector of NVIDIA GPUs: every kernel, and copies if asked for, through CUPTI.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "collector/collector.h"
#include "collector/cupti/cupti_options.h"
#include "collector/gpu/devices/device_facts.h"
#include "record/record_sink.h"

namespace proton {

/// What a profile says about where its records came from.
struct CuptiFacts {
  std::string library;
  std::string origin; ///< why that library
  std::string version;
  std::string driver;
  std::string clock;
  int64_t clock_drift_ns = 0; ///< what CUPTI's clock gained on ours while it was on
  std::map<int32_t, DeviceFacts::Facts> devices;
  std::optional<std::string> shared_with; ///< where several clients have CUPTI: the first, or ""
  uint64_t foreign_buffers = 0;           ///< another profiler's buffers that came here
  uint64_t taken_buffers = 0; ///< ours that had not come back when CUPTI was switched off
  std::optional<PcSamplingFacts> pc_sampling; ///< where it was asked for
  std::optional<CounterFacts> counters;       ///< same
};

class CuptiCollector : public Collector {
public:
  CuptiCollector(RecordSink &sink, CuptiOptions options)
      : sink_(sink), options_(std::move(options)) {}
  ~CuptiCollector() override;
  CuptiCollector(const CuptiCollector &) = delete;
  CuptiCollector &operator=(const CuptiCollector &) = delete;

  void start() override { start(nullptr, true); }
  /// Same; `stream` belongs to the calling thread and may be captured already. It may be null.
  ///   warns_again: of graphs that were captured earlier, as a first start does.
  void start(void *stream, bool warns_again);
  /// Counts, if the options say so, until `stop`. Takes over `socket`, an end of that of a process
  /// that runs serve_counter_samples.
  void start_counters(int socket);
  /// Waits for the work of every context that had a launch. [any thread]
  void flush() override;
  void stop() override;
  /// Takes CUPTI out of the process until the next start, unless it runs. Waits for all contexts.
  /// Throws Error(kUnavailable) if another profiler uses it.
  void detach();

  /// Adds a cubin that was loaded before the start, for the lines of samples. Throws
  /// Error(kUnavailable) if CUPTI cannot read it; does nothing without PC sampling.
  void add_cubin(const std::string &image);
  /// Known after the first start.
  CuptiFacts facts() const;

private:
  RecordSink &sink_;
  CuptiOptions options_;
  bool is_running_ = false;
};

} // namespace proton
