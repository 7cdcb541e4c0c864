#include "driver/cupti/cupti_profiler_host.h"

#include <utility>

#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kWithoutCounters =
    "name a libcupti of CUDA 12.6 or later by PROTON_BENCH_CUPTI_LIB, "
    "or record without counters";
constexpr uint32_t kVersionWithSets = 130100; // 13.1: CUpti_Profiler_Host_Initialize_Params grew

void load_beside(const std::string &library_path, const char *name) {
  size_t slash = library_path.rfind('/');
  if (slash == std::string::npos)
    return; // a bare name: the system knows where
  std::string path = library_path.substr(0, slash + 1) + name;
  try {
    SharedLibrary::open(name, {{path, "beside libcupti", false, true}}, kWithoutCounters);
  } catch (const Error &) { // as libcupti itself finds it
  }
}

template <typename Function> Function entry_point(const CuptiLibrary &library, const char *name) {
  Function function = nullptr;
  if (!library.shared().resolve(name, function))
    throw Error(ErrorCode::kUnavailable,
                library.path() + " lacks " + name + "; " + kWithoutCounters);
  return function;
}

} // namespace

void initialize_counters(const CuptiLibrary &library) {
  load_beside(library.path(), "libnvperf_target.so");
  load_beside(library.path(), "libnvperf_host.so"); // needs the one above
  const auto initialize =
      entry_point<cupti::function::ProfilerInitialize>(library, "cuptiProfilerInitialize");
  cupti::ProfilerParameters parameters;
  library.check(initialize(&parameters), "cuptiProfilerInitialize");
}

std::string chip_name(const CuptiLibrary &library, int32_t device) {
  const auto get =
      entry_point<cupti::function::DeviceGetChipName>(library, "cuptiDeviceGetChipName");
  cupti::ChipNameParameters parameters;
  parameters.device = static_cast<size_t>(device);
  library.check(get(&parameters), "cuptiDeviceGetChipName");
  return parameters.chip ? parameters.chip : "";
}

CuptiProfilerHost::CuptiProfilerHost(const CuptiLibrary &library, std::string chip,
                                     std::vector<std::string> metrics,
                                     std::vector<uint8_t> availability)
    : library_(library), chip_(std::move(chip)), metrics_(std::move(metrics)),
      availability_(std::move(availability)), functions_(library.shared()) {
  for (const std::string &metric : metrics_)
    names_.push_back(metric.c_str());
  functions_.check(library_.shared(), kWithoutCounters);
  initialize();
  try {
    schedule();
  } catch (...) {
    release();
    throw;
  }
}

CuptiProfilerHost::~CuptiProfilerHost() { release(); }

void CuptiProfilerHost::initialize() {
  cupti::HostInitializeParameters parameters;
  if (library_.version() < kVersionWithSets)
    parameters.struct_bytes = offsetof(cupti::HostInitializeParameters, single_pass_set);
  parameters.chip = chip_.c_str();
  parameters.availability = availability_.empty() ? nullptr : availability_.data();
  library_.check(functions_.initialize(&parameters), "cuptiProfilerHostInitialize");
  host_ = parameters.host;
}

cupti::Result CuptiProfilerHost::add(const char **names, size_t count) noexcept {
  cupti::HostAddMetricsParameters parameters;
  parameters.host = host_;
  parameters.metrics = names;
  parameters.metric_count = count;
  return functions_.add_metrics(&parameters);
}

// All metrics are added by one call: each call begins passes of its own.
void CuptiProfilerHost::schedule() {
  cupti::Result result = add(names_.data(), names_.size());
  for (size_t i = 0; result != cupti::kSuccess && i < names_.size(); ++i)
    if (add(&names_[i], 1) != cupti::kSuccess)
      throw Error(ErrorCode::kUnavailable,
                  "the GPU (" + chip_ + ") has no metric '" + metrics_[i] + "' in " +
                      library_.path() +
                      "; choose others by metrics=, as `ncu --query-metrics` lists them");
  library_.check(result, "cuptiProfilerHostConfigAddMetrics");
  cupti::HostImageSizeParameters size;
  size.host = host_;
  library_.check(functions_.image_size(&size), "cuptiProfilerHostGetConfigImageSize");
  config_.resize(size.image_bytes);
  cupti::HostImageParameters image;
  image.host = host_;
  image.image_bytes = config_.size();
  image.image = config_.data();
  library_.check(functions_.image(&image), "cuptiProfilerHostGetConfigImage");
  cupti::HostPassesParameters passes;
  passes.image_bytes = config_.size();
  passes.image = config_.data();
  library_.check(functions_.passes(&passes), "cuptiProfilerHostGetNumOfPasses");
  passes_ = passes.passes;
}

void CuptiProfilerHost::release() noexcept {
  if (!host_)
    return;
  cupti::HostParameters parameters;
  parameters.host = std::exchange(host_, nullptr);
  functions_.deinitialize(&parameters);
}

cupti::Result CuptiProfilerHost::evaluate(const uint8_t *data, size_t data_bytes, size_t index,
                                          double *values) noexcept {
  cupti::HostEvaluateParameters parameters;
  parameters.host = host_;
  parameters.data = data;
  parameters.data_bytes = data_bytes;
  parameters.index = index;
  parameters.metrics = names_.data();
  parameters.metric_count = names_.size();
  parameters.values = values;
  return functions_.evaluate(&parameters);
}

CuptiPmSampling CuptiPmSampling::of(const CuptiLibrary &library) {
  CuptiPmSampling to(library.shared());
  to.check(library.shared(),
           "hardware counters are sampled from CUDA 12.6 on: name such a libcupti by "
           "PROTON_BENCH_CUPTI_LIB, or leave out mode counters");
  return to;
}

} // namespace proton
