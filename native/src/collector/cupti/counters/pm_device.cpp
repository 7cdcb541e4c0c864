#include "collector/cupti/counters/pm_device.h"

#include <algorithm>
#include <cstddef>

#include "collector/cupti/counters/sampling_service.h"
#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr size_t kMostImages = 16; ///< that are decoded of one burst

uint32_t image_samples(const PmSettings &settings) {
  uint64_t samples = uint64_t{settings.burst_ms} * 1'000'000 / settings.interval_ns;
  return static_cast<uint32_t>(std::min(samples + samples / 4 + 64, kMostSamples));
}

} // namespace

PmDevice::PmDevice(const CuptiLibrary &library, const CuptiPmSampling &cupti, int32_t device,
                   const std::vector<std::vector<std::string>> &sets, const PmSettings &settings)
    : library_(library), cupti_(cupti), device_(device), settings_(settings) {
  schedule(sets);
  enable();
  try {
    configure();
    prepare_image();
  } catch (...) {
    disable();
    throw;
  }
}

void PmDevice::enable() {
  cupti::PmEnableParameters parameters;
  parameters.device = static_cast<size_t>(device_);
  library_.check(cupti_.enable(&parameters), "cuptiPmSamplingEnable");
  sampling_ = parameters.sampling;
}

void PmDevice::schedule(const std::vector<std::vector<std::string>> &sets) {
  std::string chip = chip_name(library_, device_), why;
  for (const std::vector<std::string> &metrics : sets) {
    try {
      host_ = std::make_unique<CuptiProfilerHost>(library_, chip, metrics);
      if (host_->passes() == 1)
        return;
      why = "the metrics take " + std::to_string(host_->passes()) +
            " passes on this GPU, and sampling has one: choose fewer by metrics=, or count them "
            "with `ncu --csv` and show them with `proton view --counters`";
    } catch (const Error &error) {
      why = error.what();
    }
  }
  throw Error(ErrorCode::kUnavailable, why);
}

void PmDevice::disable() noexcept {
  if (!sampling_)
    return;
  cupti::PmParameters parameters;
  parameters.sampling = sampling_;
  cupti_.disable(&parameters);
  sampling_ = nullptr;
}

// Ask first for what new GPUs have, and for what older ones have where it is refused.
void PmDevice::configure() {
  cupti::PmConfigParameters parameters;
  parameters.sampling = sampling_;
  parameters.config_bytes = host_->config().size();
  parameters.config = host_->config().data();
  parameters.hardware_bytes = settings_.hardware_bytes;
  parameters.interval = settings_.interval_ns; // some nanosecond per cycle of the system clock
  cupti::Result first = cupti::kSuccess;
  for (cupti::PmTrigger trigger : {cupti::kPmByTime, cupti::kPmBySystemClock})
    for (cupti::PmAppend append : {cupti::kPmKeepLatest, cupti::kPmKeepOldest}) {
      parameters.trigger = trigger;
      parameters.append = append;
      cupti::Result result = cupti_.set_config(&parameters);
      if (result == cupti::kSuccess)
        return;
      if (first == cupti::kSuccess)
        first = result;
      if (result != cupti::kErrorInvalidParameter && result != cupti::kErrorNotSupported)
        library_.check(result, "cuptiPmSamplingSetConfig");
    }
  library_.check(first, "cuptiPmSamplingSetConfig");
}

void PmDevice::prepare_image() {
  cupti::PmDataSizeParameters size;
  size.sampling = sampling_;
  size.metrics = host_->metric_names();
  size.metric_count = host_->metrics().size();
  size.most_samples = image_samples(settings_);
  library_.check(cupti_.get_data_size(&size), "cuptiPmSamplingGetCounterDataSize");
  image_.resize(size.data_bytes);
  library_.check(clear_image(), "cuptiPmSamplingCounterDataImageInitialize");
}

cupti::Result PmDevice::clear_image() noexcept {
  cupti::PmDataParameters parameters;
  parameters.sampling = sampling_;
  parameters.data_bytes = image_.size();
  parameters.data = image_.data();
  return cupti_.initialize_data(&parameters);
}

bool PmDevice::decode_image(CounterSamples &samples) {
  int64_t before_ns = monotonic_ns();
  cupti::PmDecodeParameters parameters;
  parameters.sampling = sampling_;
  parameters.data = image_.data();
  parameters.data_bytes = image_.size();
  cupti::Result result = cupti_.decode_data(&parameters);
  samples.decode_ns += monotonic_ns() - before_ns;
  samples.is_buffer_full |= parameters.is_overflown != 0;
  library_.check(result, "cuptiPmSamplingDecodeData");
  return parameters.stop == cupti::kPmDataFull;
}

size_t PmDevice::count_samples() const {
  cupti::PmDataInfoParameters info;
  info.data = image_.data();
  info.data_bytes = image_.size();
  library_.check(cupti_.get_data_info(&info), "cuptiPmSamplingGetCounterDataInfo");
  return info.completed_samples;
}

std::vector<size_t> PmDevice::read_times(CounterSamples &samples) const {
  std::vector<size_t> timed;
  int64_t before_ns = monotonic_ns();
  size_t count = count_samples();
  for (size_t i = 1; i < count; ++i) { // the first began before the burst
    cupti::PmSampleInfoParameters sample;
    sample.sampling = sampling_;
    sample.data = image_.data();
    sample.data_bytes = image_.size();
    sample.index = i;
    bool is_known = cupti_.get_sample_info(&sample) == cupti::kSuccess && sample.start_ns != 0 &&
                    sample.end_ns > sample.start_ns;
    auto start_ns = static_cast<int64_t>(sample.start_ns);
    if (!is_known || (!samples.end_ns.empty() && start_ns < samples.end_ns.back())) {
      ++samples.lost;
      continue;
    }
    timed.push_back(i);
    samples.start_ns.push_back(start_ns);
    samples.end_ns.push_back(static_cast<int64_t>(sample.end_ns));
  }
  samples.info_ns += monotonic_ns() - before_ns;
  return timed;
}

void PmDevice::read_image(CounterSamples &samples) {
  std::vector<size_t> timed = read_times(samples);
  int64_t before_ns = monotonic_ns();
  std::vector<double> row(metrics().size());
  size_t kept = 0;
  for (size_t i = 0; i < timed.size(); ++i) {
    bool is_known =
        host_->evaluate(image_.data(), image_.size(), timed[i], row.data()) == cupti::kSuccess &&
        std::all_of(row.begin(), row.end(), [](double value) { return value >= 0; });
    if (!is_known)
      continue;
    samples.start_ns[kept] = samples.start_ns[i];
    samples.end_ns[kept] = samples.end_ns[i];
    samples.values.insert(samples.values.end(), row.begin(), row.end());
    ++kept;
  }
  samples.lost += timed.size() - kept;
  samples.start_ns.resize(kept);
  samples.end_ns.resize(kept);
  samples.evaluate_ns += monotonic_ns() - before_ns;
}

// What is left would come first in the next burst; it has no times.
void PmDevice::skip_rest(CounterSamples &samples) {
  bool is_more = true;
  for (size_t images = 1; is_more && images < kMostImages; ++images) {
    if (clear_image() != cupti::kSuccess)
      return;
    is_more = decode_image(samples);
    samples.lost += count_samples();
  }
}

CounterSamples PmDevice::sample(const std::function<void()> &wait) {
  CounterSamples samples;
  samples.metrics = metrics();
  library_.check(clear_image(), "cuptiPmSamplingCounterDataImageInitialize");
  cupti::PmParameters parameters;
  parameters.sampling = sampling_;
  library_.check(cupti_.start(&parameters), "cuptiPmSamplingStart");
  wait();
  library_.check(cupti_.stop(&parameters), "cuptiPmSamplingStop");
  samples.is_image_full = decode_image(samples);
  read_image(samples);
  if (samples.is_image_full)
    skip_rest(samples);
  return samples;
}

} // namespace proton
