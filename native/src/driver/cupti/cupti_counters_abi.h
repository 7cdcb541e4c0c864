// Our own description of the part of libcupti's ABI that counts by hardware: the host's side, which
// schedules metrics and evaluates what was counted, and PM sampling. Held against NVIDIA's headers
// by a test (tests/native/driver), as cupti_abi.h is.
//
// The library looks at `struct_bytes` to know which fields there are, and counts no padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/cupti/cupti_abi.h"

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
using PmSamplingGetCounterAvailability = Result (*)(PmAvailabilityParameters *parameters);
using PmSamplingGetCounterDataSize = Result (*)(PmDataSizeParameters *parameters);
using PmSamplingCounterDataImageInitialize = Result (*)(PmDataParameters *parameters);
using PmSamplingGetCounterDataInfo = Result (*)(PmDataInfoParameters *parameters);
using PmSamplingCounterDataGetSampleInfo = Result (*)(PmSampleInfoParameters *parameters);
} // namespace function

} // namespace proton::cupti
