// The host's side of libcupti's counters: metrics by name become what the hardware is set to, and
// what it counted becomes numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/cupti/cupti_counters_abi.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

/// Metrics of one chip, for PM sampling. Not for several threads at a time.
class CuptiProfilerHost {
public:
  /// Schedules metrics by NVIDIA's names, e.g. "sm__cycles_active.sum". Needs no GPU with some
  /// libraries, the driver with others. `availability` may be empty. Throws Error(kUnavailable)
  /// that names the metric where the chip does not have one.
  CuptiProfilerHost(const CuptiLibrary &library, std::string chip, std::vector<std::string> metrics,
                    std::vector<uint8_t> availability = {});
  ~CuptiProfilerHost();
  CuptiProfilerHost(const CuptiProfilerHost &) = delete;
  CuptiProfilerHost &operator=(const CuptiProfilerHost &) = delete;

  const std::vector<std::string> &metrics() const { return metrics_; }
  /// For calls of libcupti: as many as `metrics`, valid as long as this object.
  const char **metric_names() { return names_.data(); }
  /// What the profiler's SetConfig takes.
  const std::vector<uint8_t> &config() const { return config_; }
  /// How often the same work has to run until all metrics are counted. PM sampling takes one.
  size_t passes() const { return passes_; }

  /// Writes one value for each metric of a sample of a counter data image.
  cupti::Result evaluate(const uint8_t *data, size_t data_bytes, size_t index,
                         double *values) noexcept;

private:
  struct Functions {
    cupti::function::HostInitialize initialize = nullptr;
    cupti::function::HostDeinitialize deinitialize = nullptr;
    cupti::function::HostConfigAddMetrics add_metrics = nullptr;
    cupti::function::HostGetConfigImageSize image_size = nullptr;
    cupti::function::HostGetConfigImage image = nullptr;
    cupti::function::HostGetNumOfPasses passes = nullptr;
    cupti::function::HostEvaluateToGpuValues evaluate = nullptr;
  };

  void resolve();
  void initialize();
  cupti::Result add(const char **names, size_t count) noexcept;
  void schedule();
  void release() noexcept;

  const CuptiLibrary &library_;
  std::string chip_;
  std::vector<std::string> metrics_;
  std::vector<uint8_t> availability_;
  std::vector<const char *> names_;
  Functions functions_;
  void *host_ = nullptr;
  std::vector<uint8_t> config_;
  size_t passes_ = 0;
};

/// Makes libcupti's counters ready in this process: the profiler, and the two libraries of
/// libcupti's own folder that it needs, so that it finds these and not those of another release.
/// Call before anything else of counters; later calls cost little. Throws Error(kUnavailable).
void initialize_counters(const CuptiLibrary &library);

/// "GH100". `device` is the driver's ordinal. Throws Error(kUnavailable).
std::string chip_name(const CuptiLibrary &library, int32_t device);

// The entry points of libcupti that sample hardware counters of a whole device.

/// Looked up when a session counts, by their names without "cuptiPmSampling". None is null.
struct CuptiPmSampling {
  /// Throws Error(kUnavailable) when the library lacks one.
  static CuptiPmSampling of(const CuptiLibrary &library);

  cupti::function::PmSamplingEnable enable = nullptr;
  cupti::function::PmSamplingDisable disable = nullptr;
  cupti::function::PmSamplingStart start = nullptr;
  cupti::function::PmSamplingStop stop = nullptr;
  cupti::function::PmSamplingSetConfig set_config = nullptr;
  cupti::function::PmSamplingDecodeData decode_data = nullptr;
  cupti::function::PmSamplingGetCounterDataSize get_data_size = nullptr;
  cupti::function::PmSamplingCounterDataImageInitialize initialize_data = nullptr;
  cupti::function::PmSamplingGetCounterDataInfo get_data_info = nullptr;
  cupti::function::PmSamplingCounterDataGetSampleInfo get_sample_info = nullptr;
};

} // namespace proton
