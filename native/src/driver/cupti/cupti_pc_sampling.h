// The entry points of libcupti that sample program counters.
#pragma once

#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_pc_sampling_abi.h"

namespace proton {

/// Looked up when a session samples, by their names without "cupti". None is null.
struct CuptiPcSampling {
  /// Throws Error(kUnavailable) when the library lacks one.
  static CuptiPcSampling of(const CuptiLibrary &library);

  cupti::function::PcSamplingEnable enable = nullptr;
  cupti::function::PcSamplingDisable disable = nullptr;
  cupti::function::PcSamplingStart start = nullptr;
  cupti::function::PcSamplingStop stop = nullptr;
  cupti::function::PcSamplingSetConfigurationAttribute set_configuration_attribute = nullptr;
  cupti::function::PcSamplingGetData get_data = nullptr;
  cupti::function::PcSamplingGetNumStallReasons get_num_stall_reasons = nullptr;
  cupti::function::PcSamplingGetStallReasons get_stall_reasons = nullptr;
  cupti::function::GetSassToSourceCorrelation get_sass_to_source_correlation = nullptr;
  cupti::function::GetCubinCrc get_cubin_crc = nullptr;
};

} // namespace proton
