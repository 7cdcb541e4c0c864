#include "counters.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "driver/cupti/cupti_profiler_host.h"
#include "library.h"

using namespace fake;

#define FAULT(name)                                                                                \
  static EntryPoint entry_point(#name);                                                            \
  if (const int code = entry_point.called(); code != 0)                                            \
  return code

namespace {

constexpr uint64_t kMostKernels = 1 << 18;
constexpr size_t kMetricsOfAPass = 16;
constexpr uint64_t kMagic = 0x636f756e74657273;

enum Unit : size_t { kSm, kTensor, kDram, kOther, kUnits };

Unit unit_of(std::string_view metric) {
  if (metric.find("sm__cycles_active") != metric.npos)
    return kSm;
  if (metric.find("tensor") != metric.npos)
    return kTensor;
  return metric.find("dram") != metric.npos ? kDram : kOther;
}

/// A unit's share of its peak while a kernel runs follows from the kernel's name.
double share_of(std::string_view kernel, Unit unit) {
  if (unit == kSm)
    return 1.0;
  if (kernel.find("copy") != kernel.npos)
    return unit == kDram ? 0.8 : 0.0;
  if (kernel.find("gemm") != kernel.npos)
    return unit == kTensor ? 0.9 : unit == kDram ? 0.2 : 0.1;
  return 0.1;
}

struct Ran {
  uint32_t device;
  char name[28];
  uint64_t start_ns;
  uint64_t end_ns;
};

/// The hardware: what all processes share that have the same file in FAKE_CUPTI_GPU.
struct Gpu {
  std::atomic<uint64_t> ran;          ///< kernels, one after the other, whatever their devices
  std::atomic<uint64_t> bursts;       ///< that were decoded
  std::atomic<uint64_t> most_samples; ///< of the hardware's buffer; 0: enough
  std::atomic<uint64_t> lag_ns;       ///< from a stop to the end of sampling
  Ran kernels[kMostKernels];          ///< the newest
};

Gpu &gpu() {
  static Gpu *instance = [] {
    const char *path = std::getenv("FAKE_CUPTI_GPU");
    const int file = path != nullptr ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
                                     : memfd_create("fake gpu", MFD_CLOEXEC);
    if (ftruncate(file, sizeof(Gpu)) != 0)
      std::abort();
    void *mapped = mmap(nullptr, sizeof(Gpu), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return static_cast<Gpu *>(mapped); // zeros are its first state
  }();
  return *instance;
}

/// The metrics of one host object.
struct Host {
  std::vector<std::string> metrics;
  size_t passes = 0;
};

/// What stands at the begin of a counter data image; samples follow.
struct Image {
  uint64_t magic;
  uint64_t most;
  uint64_t count;
};
struct Sample {
  uint64_t start_ns; ///< as it is answered: 0 where it is lost
  uint64_t end_ns;
  uint64_t true_start_ns;
  uint64_t true_end_ns;
  uint64_t device;
  double busy_ns[kUnits] = {};
};

struct PmSampling {
  uint32_t device = 0;
  uint64_t interval_ns = 0;
  uint64_t hardware_samples = 0;
  bool keeps_latest = true;
  bool is_started = false;
  bool is_full = false; ///< the image was: what follows has no times
  bool is_overflown = false;
  uint64_t start_ns = 0;
  std::deque<Sample> waiting; ///< in the hardware's buffer
};

/// Of this process.
struct Counters {
  std::mutex mutex;
  std::map<uint32_t, PmSampling *> devices; ///< that are enabled
};

Counters &counters() {
  static auto *instance = new Counters;
  return *instance;
}

uint64_t now_ns() {
  uint64_t ns = 0;
  return library_time(ns), ns;
}

/// Index of the first of the kernels before `end` that ended later.
uint64_t first_ending_after(uint64_t ns, uint64_t end) {
  uint64_t first = end > kMostKernels ? end - kMostKernels : 0;
  while (first < end) {
    const uint64_t middle = first + (end - first) / 2;
    if (gpu().kernels[middle % kMostKernels].end_ns <= ns)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

/// Counts the time in a sample that kernels took, by each unit's share.
void count_busy(Sample &sample) {
  const uint64_t end = gpu().ran;
  for (uint64_t at = first_ending_after(sample.true_start_ns, end); at < end; ++at) {
    const Ran &ran = gpu().kernels[at % kMostKernels];
    if (ran.start_ns >= sample.true_end_ns)
      return;
    if (ran.device != sample.device)
      continue;
    const uint64_t inside =
        std::min(ran.end_ns, sample.true_end_ns) - std::max(ran.start_ns, sample.true_start_ns);
    for (size_t unit = 0; unit < kUnits; ++unit)
      sample.busy_ns[unit] +=
          share_of(ran.name, static_cast<Unit>(unit)) * static_cast<double>(inside);
  }
}

/// Whether something in this process has started CUDA.
bool is_cuda_started() {
  using IsInitialized = int (*)();
  void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void *found = cuda != nullptr ? dlsym(cuda, "fake_cuda_is_initialized") : nullptr;
  return library().is_cuda_started ||
         (found != nullptr && reinterpret_cast<IsInitialized>(found)() != 0);
}

double value_of(const Sample &sample, std::string_view metric) {
  const auto whole = static_cast<double>(sample.true_end_ns - sample.true_start_ns);
  if (metric.find("cycles_elapsed") != metric.npos)
    return whole; // 1 GHz
  const double busy = sample.busy_ns[unit_of(metric)];
  return metric.find(".pct_") != metric.npos ? 100.0 * busy / whole : busy;
}

Image *image_of(const uint8_t *data, size_t bytes) {
  auto *image = reinterpret_cast<Image *>(const_cast<uint8_t *>(data));
  return bytes >= sizeof(Image) && image->magic == kMagic ? image : nullptr;
}

Sample *samples_of(Image *image) { return reinterpret_cast<Sample *>(image + 1); }

template <typename Parameters> bool has_size(const Parameters *parameters) {
  return parameters->struct_bytes == Parameters().struct_bytes;
}

} // namespace

namespace fake {

void count_kernel(const Kernel &kernel, uint64_t start_ns, uint64_t end_ns) {
  std::lock_guard lock(counters().mutex);
  if (!library().is_real_clock)
    return; // nothing can sample it
  const uint64_t at = gpu().ran;
  Ran &ran = gpu().kernels[at % kMostKernels];
  ran = {kernel.device, {}, start_ns, end_ns};
  std::strncpy(ran.name, kernel.name, sizeof ran.name - 1);
  gpu().ran = at + 1;
}

} // namespace fake

// The host's side.

FAKE_EXPORT int cuptiDeviceGetChipName(cupti::ChipNameParameters *parameters) {
  FAULT(cuptiDeviceGetChipName);
  if (!has_size(parameters))
    return cupti::kErrorInvalidParameter;
  parameters->chip = "GH100";
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiProfilerInitialize(cupti::ProfilerParameters *parameters) {
  FAULT(cuptiProfilerInitialize);
  if (!is_cuda_started())
    return cupti::kErrorUnknown;
  return has_size(parameters) ? cupti::kSuccess : cupti::kErrorInvalidParameter;
}

FAKE_EXPORT int cuptiProfilerHostInitialize(cupti::HostInitializeParameters *parameters) {
  FAULT(cuptiProfilerHostInitialize);
  const bool is_new = version() >= 130100;
  const size_t bytes = is_new ? sizeof(cupti::HostInitializeParameters)
                              : offsetof(cupti::HostInitializeParameters, single_pass_set);
  if (parameters->struct_bytes != bytes || parameters->chip == nullptr)
    return cupti::kErrorInvalidParameter;
  parameters->host = new Host;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostDeinitialize(cupti::HostParameters *parameters) {
  FAULT(cuptiProfilerHostDeinitialize);
  delete static_cast<Host *>(parameters->host);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostConfigAddMetrics(cupti::HostAddMetricsParameters *parameters) {
  FAULT(cuptiProfilerHostConfigAddMetrics);
  auto *host = static_cast<Host *>(parameters->host);
  for (size_t i = 0; i < parameters->metric_count; ++i)
    if (std::string_view(parameters->metrics[i]).find("__") == std::string_view::npos)
      return cupti::kErrorInvalidParameter; // as the library answers to unknown names
  for (size_t i = 0; i < parameters->metric_count; ++i)
    host->metrics.emplace_back(parameters->metrics[i]);
  host->passes += (parameters->metric_count + kMetricsOfAPass - 1) / kMetricsOfAPass;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetConfigImageSize(cupti::HostImageSizeParameters *parameters) {
  FAULT(cuptiProfilerHostGetConfigImageSize);
  parameters->image_bytes = sizeof(size_t);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetConfigImage(cupti::HostImageParameters *parameters) {
  FAULT(cuptiProfilerHostGetConfigImage);
  const auto *host = static_cast<Host *>(parameters->host);
  std::memcpy(parameters->image, &host->passes, sizeof host->passes);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostGetNumOfPasses(cupti::HostPassesParameters *parameters) {
  FAULT(cuptiProfilerHostGetNumOfPasses);
  std::memcpy(&parameters->passes, parameters->image, sizeof parameters->passes);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiProfilerHostEvaluateToGpuValues(cupti::HostEvaluateParameters *parameters) {
  FAULT(cuptiProfilerHostEvaluateToGpuValues);
  Image *image = image_of(parameters->data, parameters->data_bytes);
  if (!image || parameters->index >= image->count)
    return cupti::kErrorInvalidParameter;
  const Sample &sample = samples_of(image)[parameters->index];
  for (size_t i = 0; i < parameters->metric_count; ++i)
    parameters->values[i] = value_of(sample, parameters->metrics[i]);
  return cupti::kSuccess;
}

// PM sampling.

FAKE_EXPORT int cuptiPmSamplingEnable(cupti::PmEnableParameters *parameters) {
  FAULT(cuptiPmSamplingEnable);
  Counters &self = counters();
  std::lock_guard lock(self.mutex);
  const auto device = static_cast<uint32_t>(parameters->device);
  if (self.devices.contains(device))
    return cupti::kErrorHardwareBusy;
  auto *sampling = new PmSampling;
  sampling->device = device;
  self.devices[device] = sampling;
  parameters->sampling = sampling;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingDisable(cupti::PmParameters *parameters) {
  FAULT(cuptiPmSamplingDisable);
  auto *sampling = static_cast<PmSampling *>(parameters->sampling);
  std::lock_guard lock(counters().mutex);
  counters().devices.erase(sampling->device);
  delete sampling;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingSetConfig(cupti::PmConfigParameters *parameters) {
  FAULT(cuptiPmSamplingSetConfig);
  size_t passes = 0;
  std::memcpy(&passes, parameters->config, sizeof passes);
  if (passes != 1 || parameters->interval == 0)
    return cupti::kErrorInvalidParameter;
  auto *sampling = static_cast<PmSampling *>(parameters->sampling);
  sampling->interval_ns = parameters->interval;
  sampling->keeps_latest = parameters->append == cupti::kPmKeepLatest;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingStart(cupti::PmParameters *parameters) {
  FAULT(cuptiPmSamplingStart);
  auto *sampling = static_cast<PmSampling *>(parameters->sampling);
  if (sampling->is_started)
    return cupti::kErrorInvalidOperation;
  sampling->is_started = true;
  sampling->start_ns = now_ns();
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingStop(cupti::PmParameters *parameters) {
  FAULT(cuptiPmSamplingStop);
  auto *sampling = static_cast<PmSampling *>(parameters->sampling);
  if (!sampling->is_started)
    return cupti::kErrorInvalidOperation;
  sampling->is_started = false;
  const uint64_t end_ns = now_ns() + gpu().lag_ns;
  for (uint64_t at = sampling->start_ns; at + sampling->interval_ns <= end_ns;) {
    const uint64_t next = at + sampling->interval_ns;
    const bool is_first = at == sampling->start_ns; // begins when sampling was enabled, or at 0
    sampling->waiting.push_back({is_first ? 0 : at, next, at, next, sampling->device});
    at = next;
  }
  const uint64_t most = gpu().most_samples;
  while (most != 0 && sampling->waiting.size() > most) {
    sampling->is_overflown = true;
    sampling->waiting.pop_front();
  }
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingGetCounterDataSize(cupti::PmDataSizeParameters *parameters) {
  FAULT(cuptiPmSamplingGetCounterDataSize);
  parameters->data_bytes = sizeof(Image) + parameters->most_samples * sizeof(Sample);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingCounterDataImageInitialize(cupti::PmDataParameters *parameters) {
  FAULT(cuptiPmSamplingCounterDataImageInitialize);
  const Image image{kMagic, (parameters->data_bytes - sizeof(Image)) / sizeof(Sample), 0};
  std::memcpy(parameters->data, &image, sizeof image);
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingDecodeData(cupti::PmDecodeParameters *parameters) {
  FAULT(cuptiPmSamplingDecodeData);
  Image *image = image_of(parameters->data, parameters->data_bytes);
  if (!has_size(parameters) || !image)
    return cupti::kErrorInvalidParameter;
  auto *sampling = static_cast<PmSampling *>(parameters->sampling);
  parameters->is_overflown = std::exchange(sampling->is_overflown, false) ? 1 : 0;
  if (parameters->is_overflown != 0 && !sampling->keeps_latest) {
    sampling->waiting.clear();
    return cupti::kErrorOutOfMemory;
  }
  while (!sampling->waiting.empty() && image->count < image->most) {
    Sample sample = sampling->waiting.front();
    count_busy(sample);
    if (sampling->is_full)
      sample.start_ns = sample.end_ns = 0;
    samples_of(image)[image->count++] = sample;
    sampling->waiting.pop_front();
  }
  sampling->is_full = !sampling->waiting.empty();
  parameters->stop = sampling->is_full ? cupti::kPmDataFull : cupti::kPmEndOfRecords;
  gpu().bursts += sampling->is_full ? 0 : 1;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingGetCounterDataInfo(cupti::PmDataInfoParameters *parameters) {
  FAULT(cuptiPmSamplingGetCounterDataInfo);
  const Image *image = image_of(parameters->data, parameters->data_bytes);
  if (!image)
    return cupti::kErrorInvalidParameter;
  parameters->total_samples = image->most;
  parameters->populated_samples = parameters->completed_samples = image->count;
  return cupti::kSuccess;
}

FAKE_EXPORT int cuptiPmSamplingCounterDataGetSampleInfo(cupti::PmSampleInfoParameters *parameters) {
  FAULT(cuptiPmSamplingCounterDataGetSampleInfo);
  Image *image = image_of(parameters->data, parameters->data_bytes);
  if (!image || parameters->index >= image->count)
    return cupti::kErrorInvalidParameter;
  const Sample &sample = samples_of(image)[parameters->index];
  parameters->start_ns = sample.start_ns;
  parameters->end_ns = sample.end_ns;
  return cupti::kSuccess;
}

// Control.

FAKE_EXPORT uint64_t fake_cupti_pm_bursts() { return gpu().bursts; }

FAKE_EXPORT void fake_cupti_pm_buffer(uint64_t most_samples) { gpu().most_samples = most_samples; }

FAKE_EXPORT void fake_cupti_pm_lag(uint64_t ns) { gpu().lag_ns = ns; }
