#include "driver/cupti/cupti_pc_sampling.h"

namespace proton {

CuptiPcSampling CuptiPcSampling::of(const CuptiLibrary &library) {
  CuptiPcSampling to(library.shared());
  to.check(library.shared(), "name another libcupti by PROTON_BENCH_CUPTI_LIB, or leave out mode "
                             "pcsampling");
  return to;
}

} // namespace proton
