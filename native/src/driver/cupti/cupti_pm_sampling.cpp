#include "driver/cupti/cupti_pm_sampling.h"

namespace proton {

CuptiPmSampling CuptiPmSampling::of(const CuptiLibrary &library) {
  CuptiPmSampling to;
  RequiredSymbols required(library.shared());
  required.resolve("cuptiPmSamplingEnable", to.enable);
  required.resolve("cuptiPmSamplingDisable", to.disable);
  required.resolve("cuptiPmSamplingStart", to.start);
  required.resolve("cuptiPmSamplingStop", to.stop);
  required.resolve("cuptiPmSamplingSetConfig", to.set_config);
  required.resolve("cuptiPmSamplingDecodeData", to.decode_data);
  required.resolve("cuptiPmSamplingGetCounterDataSize", to.get_data_size);
  required.resolve("cuptiPmSamplingCounterDataImageInitialize", to.initialize_data);
  required.resolve("cuptiPmSamplingGetCounterDataInfo", to.get_data_info);
  required.resolve("cuptiPmSamplingCounterDataGetSampleInfo", to.get_sample_info);
  required.check("hardware counters are sampled from CUDA 12.6 on: name such a libcupti by "
                 "PROTON_BENCH_CUPTI_LIB, or leave out mode counters");
  return to;
}

} // namespace proton
