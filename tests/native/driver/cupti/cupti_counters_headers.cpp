// cupti_profiler_host.h says what NVIDIA's headers say.
//
// Compiled, never run, by test_vendor_headers.py, as cupti_headers.cpp is.
#include "driver/cupti/cupti_profiler_host.h"

#include <cuda.h>

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include "driver/vendor_checks.h"

using namespace proton::cupti;

SAME(kErrorVirtualizedPrivileges, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME(kProfilerOfPmSamples, CUPTI_PROFILER_TYPE_PM_SAMPLING);
SAME(kPmBySystemClock, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
SAME(kPmByTime, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
SAME(kPmStoppedOther, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER);
SAME(kPmDataFull, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
SAME(kPmEndOfRecords, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS);
SAME(kPmKeepOldest, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
SAME(kPmKeepLatest, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST);

// The sizes that the library looks at.
SAME(offsetof(HostInitializeParameters, single_pass_set),
     offsetof(CUpti_Profiler_Host_Initialize_Params, pHostObject) + sizeof(void *));
SAME(PmDecodeParameters().struct_bytes, CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);

START(HostInitializeParameters, type, CUpti_Profiler_Host_Initialize_Params, profilerType);
START(HostInitializeParameters, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
START(HostInitializeParameters, availability, CUpti_Profiler_Host_Initialize_Params,
      pCounterAvailabilityImage);
START(HostInitializeParameters, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);

FIELD(ChipNameParameters, struct_bytes, CUpti_Device_GetChipName_Params, structSize);
FIELD(ChipNameParameters, reserved, CUpti_Device_GetChipName_Params, pPriv);
FIELD(ChipNameParameters, device, CUpti_Device_GetChipName_Params, deviceIndex);
FIELD(ChipNameParameters, chip, CUpti_Device_GetChipName_Params, pChipName);
FIELD(ProfilerParameters, struct_bytes, CUpti_Profiler_Initialize_Params, structSize);
FIELD(ProfilerParameters, reserved, CUpti_Profiler_Initialize_Params, pPriv);
FIELD(HostParameters, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);
FIELD(HostAddMetricsParameters, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
FIELD(HostAddMetricsParameters, metrics, CUpti_Profiler_Host_ConfigAddMetrics_Params,
      ppMetricNames);
FIELD(HostAddMetricsParameters, metric_count, CUpti_Profiler_Host_ConfigAddMetrics_Params,
      numMetrics);
FIELD(HostImageSizeParameters, host, CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject);
FIELD(HostImageSizeParameters, image_bytes, CUpti_Profiler_Host_GetConfigImageSize_Params,
      configImageSize);
FIELD(HostImageParameters, host, CUpti_Profiler_Host_GetConfigImage_Params, pHostObject);
FIELD(HostImageParameters, image_bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
FIELD(HostImageParameters, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
FIELD(HostPassesParameters, image_bytes, CUpti_Profiler_Host_GetNumOfPasses_Params,
      configImageSize);
FIELD(HostPassesParameters, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
FIELD(HostPassesParameters, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
FIELD(HostEvaluateParameters, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
FIELD(HostEvaluateParameters, data, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
      pCounterDataImage);
FIELD(HostEvaluateParameters, data_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
      counterDataImageSize);
FIELD(HostEvaluateParameters, index, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
FIELD(HostEvaluateParameters, metrics, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
      ppMetricNames);
FIELD(HostEvaluateParameters, metric_count, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
      numMetrics);
FIELD(HostEvaluateParameters, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params,
      pMetricValues);
FIELD(PmEnableParameters, device, CUpti_PmSampling_Enable_Params, deviceIndex);
FIELD(PmEnableParameters, sampling, CUpti_PmSampling_Enable_Params, pPmSamplingObject);
FIELD(PmParameters, sampling, CUpti_PmSampling_Start_Params, pPmSamplingObject);
FIELD(PmConfigParameters, sampling, CUpti_PmSampling_SetConfig_Params, pPmSamplingObject);
FIELD(PmConfigParameters, config_bytes, CUpti_PmSampling_SetConfig_Params, configSize);
FIELD(PmConfigParameters, config, CUpti_PmSampling_SetConfig_Params, pConfig);
FIELD(PmConfigParameters, hardware_bytes, CUpti_PmSampling_SetConfig_Params, hardwareBufferSize);
FIELD(PmConfigParameters, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
FIELD(PmConfigParameters, trigger, CUpti_PmSampling_SetConfig_Params, triggerMode);
FIELD(PmConfigParameters, append, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
FIELD(PmDecodeParameters, sampling, CUpti_PmSampling_DecodeData_Params, pPmSamplingObject);
FIELD(PmDecodeParameters, data, CUpti_PmSampling_DecodeData_Params, pCounterDataImage);
FIELD(PmDecodeParameters, data_bytes, CUpti_PmSampling_DecodeData_Params, counterDataImageSize);
FIELD(PmDecodeParameters, stop, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
FIELD(PmDecodeParameters, is_overflown, CUpti_PmSampling_DecodeData_Params, overflow);
FIELD(PmAvailabilityParameters, device, CUpti_PmSampling_GetCounterAvailability_Params,
      deviceIndex);
FIELD(PmAvailabilityParameters, image_bytes, CUpti_PmSampling_GetCounterAvailability_Params,
      counterAvailabilityImageSize);
FIELD(PmAvailabilityParameters, image, CUpti_PmSampling_GetCounterAvailability_Params,
      pCounterAvailabilityImage);
FIELD(PmDataSizeParameters, sampling, CUpti_PmSampling_GetCounterDataSize_Params,
      pPmSamplingObject);
FIELD(PmDataSizeParameters, metrics, CUpti_PmSampling_GetCounterDataSize_Params, pMetricNames);
FIELD(PmDataSizeParameters, metric_count, CUpti_PmSampling_GetCounterDataSize_Params, numMetrics);
FIELD(PmDataSizeParameters, most_samples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
FIELD(PmDataSizeParameters, data_bytes, CUpti_PmSampling_GetCounterDataSize_Params,
      counterDataSize);
FIELD(PmDataParameters, sampling, CUpti_PmSampling_CounterDataImage_Initialize_Params,
      pPmSamplingObject);
FIELD(PmDataParameters, data_bytes, CUpti_PmSampling_CounterDataImage_Initialize_Params,
      counterDataSize);
FIELD(PmDataParameters, data, CUpti_PmSampling_CounterDataImage_Initialize_Params, pCounterData);
FIELD(PmDataInfoParameters, data, CUpti_PmSampling_GetCounterDataInfo_Params, pCounterDataImage);
FIELD(PmDataInfoParameters, data_bytes, CUpti_PmSampling_GetCounterDataInfo_Params,
      counterDataImageSize);
FIELD(PmDataInfoParameters, total_samples, CUpti_PmSampling_GetCounterDataInfo_Params,
      numTotalSamples);
FIELD(PmDataInfoParameters, populated_samples, CUpti_PmSampling_GetCounterDataInfo_Params,
      numPopulatedSamples);
FIELD(PmDataInfoParameters, completed_samples, CUpti_PmSampling_GetCounterDataInfo_Params,
      numCompletedSamples);
FIELD(PmSampleInfoParameters, sampling, CUpti_PmSampling_CounterData_GetSampleInfo_Params,
      pPmSamplingObject);
FIELD(PmSampleInfoParameters, data, CUpti_PmSampling_CounterData_GetSampleInfo_Params,
      pCounterDataImage);
FIELD(PmSampleInfoParameters, data_bytes, CUpti_PmSampling_CounterData_GetSampleInfo_Params,
      counterDataImageSize);
FIELD(PmSampleInfoParameters, index, CUpti_PmSampling_CounterData_GetSampleInfo_Params,
      sampleIndex);
FIELD(PmSampleInfoParameters, start_ns, CUpti_PmSampling_CounterData_GetSampleInfo_Params,
      startTimestamp);
FIELD(PmSampleInfoParameters, end_ns, CUpti_PmSampling_CounterData_GetSampleInfo_Params,
      endTimestamp);

SAME_CALL(DeviceGetChipName, cuptiDeviceGetChipName);
SAME_CALL(ProfilerInitialize, cuptiProfilerInitialize);
SAME_CALL(HostInitialize, cuptiProfilerHostInitialize);
SAME_CALL(HostDeinitialize, cuptiProfilerHostDeinitialize);
SAME_CALL(HostConfigAddMetrics, cuptiProfilerHostConfigAddMetrics);
SAME_CALL(HostGetConfigImageSize, cuptiProfilerHostGetConfigImageSize);
SAME_CALL(HostGetConfigImage, cuptiProfilerHostGetConfigImage);
SAME_CALL(HostGetNumOfPasses, cuptiProfilerHostGetNumOfPasses);
SAME_CALL(HostEvaluateToGpuValues, cuptiProfilerHostEvaluateToGpuValues);
SAME_CALL(PmSamplingEnable, cuptiPmSamplingEnable);
SAME_CALL(PmSamplingDisable, cuptiPmSamplingDisable);
SAME_CALL(PmSamplingStart, cuptiPmSamplingStart);
SAME_CALL(PmSamplingStop, cuptiPmSamplingStop);
SAME_CALL(PmSamplingSetConfig, cuptiPmSamplingSetConfig);
SAME_CALL(PmSamplingDecodeData, cuptiPmSamplingDecodeData);
SAME_CALL(PmSamplingGetCounterDataSize, cuptiPmSamplingGetCounterDataSize);
SAME_CALL(PmSamplingCounterDataImageInitialize, cuptiPmSamplingCounterDataImageInitialize);
SAME_CALL(PmSamplingGetCounterDataInfo, cuptiPmSamplingGetCounterDataInfo);
SAME_CALL(PmSamplingCounterDataGetSampleInfo, cuptiPmSamplingCounterDataGetSampleInfo);
