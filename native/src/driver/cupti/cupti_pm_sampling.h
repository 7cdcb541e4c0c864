// The entry points of libcupti that sample hardware counters of a whole device.
#pragma once

#include "driver/cupti/cupti_counters_abi.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

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
