// Our own description of the part of libcupti's ABI that counts by hardware between two points of
// the program: the Range Profiler. Held against NVIDIA's headers by a test (tests/native/driver),
// as cupti_abi.h is. The host's side is in cupti_counters_abi.h.
//
// The library looks at `struct_bytes` to know which fields there are, and counts no padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/cupti/cupti_abi.h"

namespace proton::cupti {

enum RangeKind : int { // CUpti_ProfilerRange
  kAutoRange = 1,      ///< each kernel is one; fails with graphs, and 12.8 returns none
  kUserRange = 2,      ///< what is pushed and popped
};

enum RangeReplay : int { // CUpti_ProfilerReplayMode
  kKernelReplay = 2,     ///< the library repeats kernels: their records come twice
  kUserReplay = 3,       ///< the program runs once, or repeats by itself
};

struct RangeEnableParameters { // CUpti_RangeProfiler_Enable_Params; 13.4 knows more fields
  size_t struct_bytes = sizeof(RangeEnableParameters);
  void *reserved = nullptr;
  void *context = nullptr;
  void *profiler = nullptr; ///< answer
};

/// Parameters of cuptiRangeProfilerDisable, Start and PopRange.
struct RangeParameters {
  size_t struct_bytes = sizeof(RangeParameters);
  void *reserved = nullptr;
  void *profiler = nullptr;
};

struct RangeStopParameters { // CUpti_RangeProfiler_Stop_Params
  size_t struct_bytes = offsetof(RangeStopParameters, has_all_passes) + sizeof(uint8_t);
  void *reserved = nullptr;
  void *profiler = nullptr;
  size_t pass = 0; ///< answer, and the two below
  size_t nesting_level = 0;
  uint8_t has_all_passes = 0;
};

struct RangePushParameters { // CUpti_RangeProfiler_PushRange_Params
  size_t struct_bytes = sizeof(RangePushParameters);
  void *reserved = nullptr;
  void *profiler = nullptr;
  const char *name = nullptr;
};

struct RangeConfigParameters { // CUpti_RangeProfiler_SetConfig_Params
  size_t struct_bytes = offsetof(RangeConfigParameters, target_nesting_level) + sizeof(uint16_t);
  void *reserved = nullptr;
  void *profiler = nullptr;
  size_t config_bytes = 0;
  const uint8_t *config = nullptr;
  size_t data_bytes = 0;
  uint8_t *data = nullptr;
  RangeKind kind = kUserRange;
  RangeReplay replay = kUserReplay;
  size_t most_ranges = 0;
  uint16_t nesting_levels = 1;
  uint16_t least_nesting_level = 1;
  size_t pass = 0;
  uint16_t target_nesting_level = 0;
};

struct RangeDecodeParameters { // CUpti_RangeProfiler_DecodeData_Params
  size_t struct_bytes = sizeof(RangeDecodeParameters);
  void *reserved = nullptr;
  void *profiler = nullptr;
  size_t dropped_ranges = 0; ///< answer
};

struct RangeDataSizeParameters { // CUpti_RangeProfiler_GetCounterDataSize_Params
  size_t struct_bytes = sizeof(RangeDataSizeParameters);
  void *reserved = nullptr;
  void *profiler = nullptr;
  const char **metrics = nullptr;
  size_t metric_count = 0;
  size_t most_ranges = 0;
  uint32_t most_tree_nodes = 0;
  size_t data_bytes = 0; ///< answer
};

struct RangeDataParameters { // CUpti_RangeProfiler_CounterDataImage_Initialize_Params
  size_t struct_bytes = sizeof(RangeDataParameters);
  void *reserved = nullptr;
  void *profiler = nullptr;
  size_t data_bytes = 0;
  uint8_t *data = nullptr;
};

struct RangeDataInfoParameters { // CUpti_RangeProfiler_GetCounterDataInfo_Params
  size_t struct_bytes = sizeof(RangeDataInfoParameters);
  void *reserved = nullptr;
  const uint8_t *data = nullptr;
  size_t data_bytes = 0;
  size_t ranges = 0; ///< answer
};

struct RangeInfoParameters { // CUpti_RangeProfiler_CounterData_GetRangeInfo_Params
  size_t struct_bytes = sizeof(RangeInfoParameters);
  void *reserved = nullptr;
  const uint8_t *data = nullptr;
  size_t data_bytes = 0;
  size_t index = 0;
  const char *delimiter = "/";
  const char *name = nullptr; ///< answer
};

namespace function {
using RangeProfilerEnable = Result (*)(RangeEnableParameters *parameters);
using RangeProfilerDisable = Result (*)(RangeParameters *parameters);
using RangeProfilerStart = Result (*)(RangeParameters *parameters);
using RangeProfilerStop = Result (*)(RangeStopParameters *parameters);
using RangeProfilerPushRange = Result (*)(RangePushParameters *parameters);
using RangeProfilerPopRange = Result (*)(RangeParameters *parameters);
using RangeProfilerSetConfig = Result (*)(RangeConfigParameters *parameters);
using RangeProfilerDecodeData = Result (*)(RangeDecodeParameters *parameters);
using RangeProfilerGetCounterDataSize = Result (*)(RangeDataSizeParameters *parameters);
using RangeProfilerCounterDataImageInitialize = Result (*)(RangeDataParameters *parameters);
using RangeProfilerGetCounterDataInfo = Result (*)(RangeDataInfoParameters *parameters);
using RangeProfilerCounterDataGetRangeInfo = Result (*)(RangeInfoParameters *parameters);
} // namespace function

} // namespace proton::cupti
