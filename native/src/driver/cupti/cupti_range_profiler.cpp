#include "driver/cupti/cupti_range_profiler.h"

namespace proton {

CuptiRangeProfiler CuptiRangeProfiler::of(const CuptiLibrary &library) {
  CuptiRangeProfiler to;
  RequiredSymbols required(library.shared());
  required.resolve("cuptiRangeProfilerEnable", to.enable);
  required.resolve("cuptiRangeProfilerDisable", to.disable);
  required.resolve("cuptiRangeProfilerStart", to.start);
  required.resolve("cuptiRangeProfilerStop", to.stop);
  required.resolve("cuptiRangeProfilerPushRange", to.push);
  required.resolve("cuptiRangeProfilerPopRange", to.pop);
  required.resolve("cuptiRangeProfilerSetConfig", to.set_config);
  required.resolve("cuptiRangeProfilerDecodeData", to.decode_data);
  required.resolve("cuptiRangeProfilerGetCounterDataSize", to.get_data_size);
  required.resolve("cuptiRangeProfilerCounterDataImageInitialize", to.initialize_data);
  required.resolve("cuptiRangeProfilerGetCounterDataInfo", to.get_data_info);
  required.resolve("cuptiRangeProfilerCounterDataGetRangeInfo", to.get_range_info);
  required.check("name a libcupti of CUDA 12.6 or later by PROTON_BENCH_CUPTI_LIB, or record with "
                 "counters=gpm");
  return to;
}

} // namespace proton
