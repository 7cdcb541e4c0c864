// The host's side of libcupti's counters: metrics by name become what the hardware is set to, and
// what it counted becomes numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/cupti/cupti_abi.h"
#include "driver/cupti/cupti_library.h"

// Our own description of the part of libcupti's ABI that counts by hardware: the host's side, which
// schedules metrics and evaluates what was counted, and PM sampling. Held against NVIDIA's headers
// by a test (tests/native/driver), as cupti_abi.h is.
//
// The library looks at `struct_bytes` to know which fields there are, and counts no padding.

namespace proton::cupti {

// The host's side.

enum ProfilerType : int { // CUpti_ProfilerType
  kProfilerOfPmSamples = 1,
};

struct ChipNameParameters { // CUpti_Device_GetChipName_Params
  size_t struct_bytes = sizeof(ChipNameParameters);
  void *reserved = nullptr;
  size_t device = 0;
  const char *chip = nullptr; ///< answer
};

/// Parameters of cuptiProfilerInitialize and cuptiProfilerDeInitialize.
struct ProfilerParameters {
  size_t struct_bytes = sizeof(ProfilerParameters);
  void *reserved = nullptr;
};

struct HostInitializeParameters { // CUpti_Profiler_Host_Initialize_Params
  size_t struct_bytes = sizeof(HostInitializeParameters);
  void *reserved = nullptr;
  ProfilerType type = kProfilerOfPmSamples;
  const char *chip = nullptr;
  const uint8_t *availability = nullptr;
  void *host = nullptr;                  ///< answer
  const char *single_pass_set = nullptr; ///< from 13.1
};

/// Parameters of cuptiProfilerHostDeinitialize.
struct HostParameters {
  size_t struct_bytes = sizeof(HostParameters);
  void *reserved = nullptr;
  void *host = nullptr;
};

struct HostAddMetricsParameters { // CUpti_Profiler_Host_ConfigAddMetrics_Params
  size_t struct_bytes = sizeof(HostAddMetricsParameters);
  void *reserved = nullptr;
  void *host = nullptr;
  const char **metrics = nullptr;
  size_t metric_count = 0;
};

struct HostImageSizeParameters { // CUpti_Profiler_Host_GetConfigImageSize_Params
  size_t struct_bytes = sizeof(HostImageSizeParameters);
  void *reserved = nullptr;
  void *host = nullptr;
  size_t image_bytes = 0; ///< answer
};

struct HostImageParameters { // CUpti_Profiler_Host_GetConfigImage_Params
  size_t struct_bytes = sizeof(HostImageParameters);
  void *reserved = nullptr;
  void *host = nullptr;
  size_t image_bytes = 0;
  uint8_t *image = nullptr; ///< ours, to be filled
};

struct HostPassesParameters { // CUpti_Profiler_Host_GetNumOfPasses_Params
  size_t struct_bytes = sizeof(HostPassesParameters);
  void *reserved = nullptr;
  size_t image_bytes = 0;
  uint8_t *image = nullptr;
  size_t passes = 0; ///< answer
};

struct HostEvaluateParameters { // CUpti_Profiler_Host_EvaluateToGpuValues_Params
  size_t struct_bytes = sizeof(HostEvaluateParameters);
  void *reserved = nullptr;
  void *host = nullptr;
  const uint8_t *data = nullptr;
  size_t data_bytes = 0;
  size_t index = 0; ///< of the sample
  const char **metrics = nullptr;
  size_t metric_count = 0;
  double *values = nullptr; ///< ours, one for each metric
};

// PM sampling.

enum PmTrigger : int {  // CUpti_PmSampling_TriggerMode
  kPmBySystemClock = 0, ///< intervals are cycles of the system clock: what Turing and GA100 have
  kPmByTime = 1,        ///< intervals are nanoseconds
};

enum PmDecodeStop : int { // CUpti_PmSampling_DecodeStopReason
  kPmStoppedOther = 0,
  kPmDataFull = 1, ///< later samples come without times
  kPmEndOfRecords = 2,
};

enum PmAppend : int { // CUpti_PmSampling_HardwareBuffer_AppendMode
  kPmKeepOldest = 0,
  kPmKeepLatest = 1, ///< from Ampere on
};

struct PmEnableParameters { // CUpti_PmSampling_Enable_Params
  size_t struct_bytes = sizeof(PmEnableParameters);
  void *reserved = nullptr;
  size_t device = 0;
  void *sampling = nullptr; ///< answer
};

/// Parameters of cuptiPmSamplingDisable, Start and Stop.
struct PmParameters {
  size_t struct_bytes = sizeof(PmParameters);
  void *reserved = nullptr;
  void *sampling = nullptr;
};

struct PmConfigParameters { // CUpti_PmSampling_SetConfig_Params
  size_t struct_bytes = sizeof(PmConfigParameters);
  void *reserved = nullptr;
  void *sampling = nullptr;
  size_t config_bytes = 0;
  const uint8_t *config = nullptr;
  size_t hardware_bytes = 0;
  uint64_t interval = 0;
  PmTrigger trigger = kPmByTime;
  PmAppend append = kPmKeepLatest;
};

struct PmDecodeParameters { // CUpti_PmSampling_DecodeData_Params
  size_t struct_bytes = offsetof(PmDecodeParameters, is_overflown) + sizeof(uint8_t);
  void *reserved = nullptr;
  void *sampling = nullptr;
  uint8_t *data = nullptr;
  size_t data_bytes = 0;
  PmDecodeStop stop = kPmStoppedOther; ///< answer
  uint8_t is_overflown = 0;            ///< answer: the hardware's buffer was full
};

struct PmAvailabilityParameters { // CUpti_PmSampling_GetCounterAvailability_Params
  size_t struct_bytes = sizeof(PmAvailabilityParameters);
  void *reserved = nullptr;
  size_t device = 0;
  size_t image_bytes = 0;   ///< answer while `image` is null
  uint8_t *image = nullptr; ///< ours, to be filled
};

struct PmDataSizeParameters { // CUpti_PmSampling_GetCounterDataSize_Params
  size_t struct_bytes = sizeof(PmDataSizeParameters);
  void *reserved = nullptr;
  void *sampling = nullptr;
  const char **metrics = nullptr;
  size_t metric_count = 0;
  uint32_t most_samples = 0;
  size_t data_bytes = 0; ///< answer
};

struct PmDataParameters { // CUpti_PmSampling_CounterDataImage_Initialize_Params
  size_t struct_bytes = sizeof(PmDataParameters);
  void *reserved = nullptr;
  void *sampling = nullptr;
  size_t data_bytes = 0;
  uint8_t *data = nullptr;
};

struct PmDataInfoParameters { // CUpti_PmSampling_GetCounterDataInfo_Params
  size_t struct_bytes = sizeof(PmDataInfoParameters);
  void *reserved = nullptr;
  const uint8_t *data = nullptr;
  size_t data_bytes = 0;
  size_t total_samples = 0; ///< answer, and the two below
  size_t populated_samples = 0;
  size_t completed_samples = 0;
};

struct PmSampleInfoParameters { // CUpti_PmSampling_CounterData_GetSampleInfo_Params
  size_t struct_bytes = sizeof(PmSampleInfoParameters);
  void *reserved = nullptr;
  void *sampling = nullptr;
  const uint8_t *data = nullptr;
  size_t data_bytes = 0;
  size_t index = 0;
  uint64_t start_ns = 0; ///< answer, on the vendor's clock, and the one below; 0: none
  uint64_t end_ns = 0;
};

namespace function {
using DeviceGetChipName = Result (*)(ChipNameParameters *parameters);
using ProfilerInitialize = Result (*)(ProfilerParameters *parameters);
using HostInitialize = Result (*)(HostInitializeParameters *parameters);
using HostDeinitialize = Result (*)(HostParameters *parameters);
using HostConfigAddMetrics = Result (*)(HostAddMetricsParameters *parameters);
using HostGetConfigImageSize = Result (*)(HostImageSizeParameters *parameters);
using HostGetConfigImage = Result (*)(HostImageParameters *parameters);
using HostGetNumOfPasses = Result (*)(HostPassesParameters *parameters);
using HostEvaluateToGpuValues = Result (*)(HostEvaluateParameters *parameters);
using PmSamplingEnable = Result (*)(PmEnableParameters *parameters);
using PmSamplingDisable = Result (*)(PmParameters *parameters);
using PmSamplingStart = Result (*)(PmParameters *parameters);
using PmSamplingStop = Result (*)(PmParameters *parameters);
using PmSamplingSetConfig = Result (*)(PmConfigParameters *parameters);
using PmSamplingDecodeData = Result (*)(PmDecodeParameters *parameters);
using PmSamplingGetCounterDataSize = Result (*)(PmDataSizeParameters *parameters);
using PmSamplingCounterDataImageInitialize = Result (*)(PmDataParameters *parameters);
using PmSamplingGetCounterDataInfo = Result (*)(PmDataInfoParameters *parameters);
using PmSamplingCounterDataGetSampleInfo = Result (*)(PmSampleInfoParameters *parameters);
} // namespace function

} // namespace proton::cupti

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
  struct Functions : SymbolTable {
    using SymbolTable::SymbolTable;

    cupti::function::HostInitialize initialize = need("cuptiProfilerHostInitialize");
    cupti::function::HostDeinitialize deinitialize = need("cuptiProfilerHostDeinitialize");
    cupti::function::HostConfigAddMetrics add_metrics = need("cuptiProfilerHostConfigAddMetrics");
    cupti::function::HostGetConfigImageSize image_size =
        need("cuptiProfilerHostGetConfigImageSize");
    cupti::function::HostGetConfigImage image = need("cuptiProfilerHostGetConfigImage");
    cupti::function::HostGetNumOfPasses passes = need("cuptiProfilerHostGetNumOfPasses");
    cupti::function::HostEvaluateToGpuValues evaluate =
        need("cuptiProfilerHostEvaluateToGpuValues");
  };

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
struct CuptiPmSampling : SymbolTable {
  using SymbolTable::SymbolTable;

  /// Throws Error(kUnavailable) when the library lacks one.
  static CuptiPmSampling of(const CuptiLibrary &library);

  cupti::function::PmSamplingEnable enable = need("cuptiPmSamplingEnable");
  cupti::function::PmSamplingDisable disable = need("cuptiPmSamplingDisable");
  cupti::function::PmSamplingStart start = need("cuptiPmSamplingStart");
  cupti::function::PmSamplingStop stop = need("cuptiPmSamplingStop");
  cupti::function::PmSamplingSetConfig set_config = need("cuptiPmSamplingSetConfig");
  cupti::function::PmSamplingDecodeData decode_data = need("cuptiPmSamplingDecodeData");
  cupti::function::PmSamplingGetCounterDataSize get_data_size =
      need("cuptiPmSamplingGetCounterDataSize");
  cupti::function::PmSamplingCounterDataImageInitialize initialize_data =
      need("cuptiPmSamplingCounterDataImageInitialize");
  cupti::function::PmSamplingGetCounterDataInfo get_data_info =
      need("cuptiPmSamplingGetCounterDataInfo");
  cupti::function::PmSamplingCounterDataGetSampleInfo get_sample_info =
      need("cuptiPmSamplingCounterDataGetSampleInfo");
};

} // namespace proton
