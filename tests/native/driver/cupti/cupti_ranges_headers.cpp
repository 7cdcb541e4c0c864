// cupti_ranges_abi.h says what NVIDIA's headers say.
//
// Compiled, never run, by test_vendor_headers.py, as cupti_headers.cpp is.
#include "driver/cupti/cupti_ranges_abi.h"

#include <cuda.h>

#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

#include "driver/vendor_checks.h"

using namespace proton::cupti;

SAME(kAutoRange, CUPTI_AutoRange);
SAME(kUserRange, CUPTI_UserRange);
SAME(kKernelReplay, CUPTI_KernelReplay);
SAME(kUserReplay, CUPTI_UserReplay);

// The sizes that the library looks at.
SAME(RangeStopParameters().struct_bytes, CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE);
SAME(RangeConfigParameters().struct_bytes, CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE);
SAME(RangeEnableParameters().struct_bytes,
     offsetof(CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject) + sizeof(void *));
SAME(sizeof(RangeParameters), CUpti_RangeProfiler_Start_Params_STRUCT_SIZE);
SAME(sizeof(RangeParameters), CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE);
SAME(sizeof(RangeParameters), CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE);
SAME(sizeof(RangePushParameters), CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE);
SAME(sizeof(RangeDecodeParameters), CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE);
SAME(sizeof(RangeDataSizeParameters), CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE);
SAME(sizeof(RangeDataParameters),
     CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE);
SAME(sizeof(RangeDataInfoParameters), CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE);
SAME(sizeof(RangeInfoParameters), CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE);

START(RangeEnableParameters, context, CUpti_RangeProfiler_Enable_Params, ctx);
START(RangeEnableParameters, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
FIELD(RangeParameters, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
FIELD(RangePushParameters, name, CUpti_RangeProfiler_PushRange_Params, pRangeName);
FIELD(RangeStopParameters, has_all_passes, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);
FIELD(RangeConfigParameters, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
FIELD(RangeConfigParameters, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
FIELD(RangeConfigParameters, data_bytes, CUpti_RangeProfiler_SetConfig_Params,
      counterDataImageSize);
FIELD(RangeConfigParameters, data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
FIELD(RangeConfigParameters, most_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
FIELD(RangeConfigParameters, nesting_levels, CUpti_RangeProfiler_SetConfig_Params,
      numNestingLevels);
FIELD(RangeConfigParameters, least_nesting_level, CUpti_RangeProfiler_SetConfig_Params,
      minNestingLevel);
FIELD(RangeConfigParameters, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
FIELD(RangeConfigParameters, target_nesting_level, CUpti_RangeProfiler_SetConfig_Params,
      targetNestingLevel);
FIELD(RangeDecodeParameters, dropped_ranges, CUpti_RangeProfiler_DecodeData_Params,
      numOfRangeDropped);
FIELD(RangeDataSizeParameters, metrics, CUpti_RangeProfiler_GetCounterDataSize_Params,
      pMetricNames);
FIELD(RangeDataSizeParameters, metric_count, CUpti_RangeProfiler_GetCounterDataSize_Params,
      numMetrics);
FIELD(RangeDataSizeParameters, most_ranges, CUpti_RangeProfiler_GetCounterDataSize_Params,
      maxNumOfRanges);
FIELD(RangeDataSizeParameters, most_tree_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params,
      maxNumRangeTreeNodes);
FIELD(RangeDataSizeParameters, data_bytes, CUpti_RangeProfiler_GetCounterDataSize_Params,
      counterDataSize);
FIELD(RangeDataParameters, data_bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
      counterDataSize);
FIELD(RangeDataParameters, data, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
      pCounterData);
FIELD(RangeDataInfoParameters, data, CUpti_RangeProfiler_GetCounterDataInfo_Params,
      pCounterDataImage);
FIELD(RangeDataInfoParameters, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params,
      numTotalRanges);
FIELD(RangeInfoParameters, index, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeIndex);
FIELD(RangeInfoParameters, delimiter, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params,
      rangeDelimiter);
FIELD(RangeInfoParameters, name, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeName);

SAME_CALL(RangeProfilerEnable, cuptiRangeProfilerEnable);
SAME_CALL(RangeProfilerDisable, cuptiRangeProfilerDisable);
SAME_CALL(RangeProfilerStart, cuptiRangeProfilerStart);
SAME_CALL(RangeProfilerStop, cuptiRangeProfilerStop);
SAME_CALL(RangeProfilerPushRange, cuptiRangeProfilerPushRange);
SAME_CALL(RangeProfilerPopRange, cuptiRangeProfilerPopRange);
SAME_CALL(RangeProfilerSetConfig, cuptiRangeProfilerSetConfig);
SAME_CALL(RangeProfilerDecodeData, cuptiRangeProfilerDecodeData);
SAME_CALL(RangeProfilerGetCounterDataSize, cuptiRangeProfilerGetCounterDataSize);
SAME_CALL(RangeProfilerCounterDataImageInitialize, cuptiRangeProfilerCounterDataImageInitialize);
SAME_CALL(RangeProfilerGetCounterDataInfo, cuptiRangeProfilerGetCounterDataInfo);
SAME_CALL(RangeProfilerCounterDataGetRangeInfo, cuptiRangeProfilerCounterDataGetRangeInfo);
