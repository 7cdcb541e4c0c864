#include "driver/cupti/cupti_pc_sampling.h"

#include "support/error.h"

namespace proton {

CuptiPcSampling CuptiPcSampling::of(const CuptiLibrary &library) {
  CuptiPcSampling to;
  std::string missing;
  auto require = [&](const char *name, auto &function) {
    if (!library.shared().resolve(name, function))
      missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  require("cuptiPCSamplingEnable", to.enable);
  require("cuptiPCSamplingDisable", to.disable);
  require("cuptiPCSamplingStart", to.start);
  require("cuptiPCSamplingStop", to.stop);
  require("cuptiPCSamplingSetConfigurationAttribute", to.set_configuration_attribute);
  require("cuptiPCSamplingGetData", to.get_data);
  require("cuptiPCSamplingGetNumStallReasons", to.get_num_stall_reasons);
  require("cuptiPCSamplingGetStallReasons", to.get_stall_reasons);
  require("cuptiGetSassToSourceCorrelation", to.get_sass_to_source_correlation);
  require("cuptiGetCubinCrc", to.get_cubin_crc);
  if (!missing.empty())
    throw Error(ErrorCode::kUnavailable,
                library.path() + " cannot sample program counters: it lacks " + missing +
                    "; name another libcupti by PROTON_BENCH_CUPTI_LIB, or leave out "
                    "mode pcsampling");
  return to;
}

} // namespace proton
