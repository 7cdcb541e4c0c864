// The entry points of libcupti that count by hardware between two points of the program.
#pragma once

#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_ranges_abi.h"

namespace proton {

/// Looked up when a session counts, by their names without "cuptiRangeProfiler". None is null.
struct CuptiRangeProfiler {
  /// Throws Error(kUnavailable) when the library lacks one.
  static CuptiRangeProfiler of(const CuptiLibrary &library);

  cupti::function::RangeProfilerEnable enable = nullptr;
  cupti::function::RangeProfilerDisable disable = nullptr;
  cupti::function::RangeProfilerStart start = nullptr;
  cupti::function::RangeProfilerStop stop = nullptr;
  cupti::function::RangeProfilerPushRange push = nullptr;
  cupti::function::RangeProfilerPopRange pop = nullptr;
  cupti::function::RangeProfilerSetConfig set_config = nullptr;
  cupti::function::RangeProfilerDecodeData decode_data = nullptr;
  cupti::function::RangeProfilerGetCounterDataSize get_data_size = nullptr;
  cupti::function::RangeProfilerCounterDataImageInitialize initialize_data = nullptr;
  cupti::function::RangeProfilerGetCounterDataInfo get_data_info = nullptr;
  cupti::function::RangeProfilerCounterDataGetRangeInfo get_range_info = nullptr;
};

} // namespace proton
