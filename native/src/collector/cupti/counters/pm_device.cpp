#include "collector/cupti/counters/pm_device.h"

#include <algorithm>
#include <cmath>

#include "support/error.h"

namespace proton {
namespace {

constexpr size_t kMostImages = 16; ///< that are decoded of one burst
// What a burst may be too long by: its thread has the lowest priority.
constexpr uint64_t kMostSamples = 100'000;

uint32_t image_samples(const CounterOptions &options) {
  uint64_t samples = uint64_t{options.burst_ms} * 1'000'000 / options.interval_ns;
  return static_cast<uint32_t>(std::min(samples + samples / 2 + 64, kMostSamples));
}

} // namespace

PmDevice::PmDevice(const CuptiLibrary &library, const CuptiPmSampling &cupti, int32_t device,
                   const CounterOptions &options)
    : library_(library), cupti_(cupti), device_(device) {
  schedule(options.sets);
}

void PmDevice::enable(const CounterOptions &options) {
  cupti::PmEnableParameters enable;
  enable.device = static_cast<size_t>(device_);
  library_.check(cupti_.enable(&enable), "cuptiPmSamplingEnable");
  sampling_ = enable.sampling;
  try {
    configure(options);
    prepare_image(options);
  } catch (...) {
    disable();
    throw;
  }
}

void PmDevice::schedule(const std::vector<std::vector<std::string>> &sets) {
  std::string chip = chip_name(library_, device_);
  std::string why;
  for (const std::vector<std::string> &metrics : sets) {
    try {
      host_ =
          std::make_unique<CuptiProfilerHost>(library_, cupti::kProfilerOfPmSamples, chip, metrics);
      if (host_->passes() == 1)
        return;
      why = "the metrics take " + std::to_string(host_->passes()) +
            " passes on this GPU, and sampling has one: choose fewer by metrics=, or record with "
            "counters=exact";
    } catch (const Error &error) {
      why = error.what();
    }
  }
  throw Error(ErrorCode::kUnavailable, why);
}

void PmDevice::disable() noexcept {
  cupti::PmParameters parameters;
  parameters.sampling = sampling_;
  cupti_.disable(&parameters);
}

// Ask first for what new GPUs have, and for what older ones have where it is refused.
void PmDevice::configure(const CounterOptions &options) {
  cupti::PmConfigParameters parameters;
  parameters.sampling = sampling_;
  parameters.config_bytes = host_->config().size();
  parameters.config = host_->config().data();
  parameters.hardware_bytes = options.hardware_bytes;
  parameters.interval = options.interval_ns; // some nanosecond per cycle of the system clock
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

void PmDevice::prepare_image(const CounterOptions &options) {
  cupti::PmDataSizeParameters size;
  size.sampling = sampling_;
  size.metrics = host_->metric_names();
  size.metric_count = host_->metrics().size();
  size.most_samples = image_samples(options);
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

cupti::Result PmDevice::start() noexcept {
  cupti::PmParameters parameters;
  parameters.sampling = sampling_;
  return cupti_.start(&parameters);
}

cupti::Result PmDevice::stop() noexcept {
  cupti::PmParameters parameters;
  parameters.sampling = sampling_;
  return cupti_.stop(&parameters);
}

bool PmDevice::decode_image(PmSamples &samples) noexcept {
  cupti::PmDecodeParameters parameters;
  parameters.sampling = sampling_;
  parameters.data = image_.data();
  parameters.data_bytes = image_.size();
  cupti::Result result = cupti_.decode_data(&parameters);
  samples.is_buffer_full |= parameters.is_overflown != 0;
  if (result != cupti::kSuccess) {
    samples.error = result;
    return false;
  }
  return parameters.stop == cupti::kPmDataFull;
}

void PmDevice::read_image(PmSamples &samples, bool is_timed) {
  cupti::PmDataInfoParameters info;
  info.data = image_.data();
  info.data_bytes = image_.size();
  if (cupti::Result result = cupti_.get_data_info(&info); result != cupti::kSuccess) {
    samples.error = result;
    return;
  }
  if (!is_timed) { // after a full image samples come without times
    samples.lost += info.completed_samples;
    return;
  }
  size_t metrics = host_->metrics().size();
  for (size_t i = 1; i < info.completed_samples; ++i) { // the first began before the burst
    cupti::PmSampleInfoParameters sample;
    sample.sampling = sampling_;
    sample.data = image_.data();
    sample.data_bytes = image_.size();
    sample.index = i;
    bool is_known = cupti_.get_sample_info(&sample) == cupti::kSuccess && sample.start_ns != 0 &&
                    sample.end_ns > sample.start_ns &&
                    (samples.end_ns.empty() || sample.start_ns >= samples.end_ns.back());
    size_t row = samples.values.size();
    samples.values.resize(row + metrics);
    double *values = &samples.values[row];
    is_known =
        is_known && host_->evaluate(image_.data(), image_.size(), i, values) == cupti::kSuccess;
    if (!is_known || !std::all_of(values, values + metrics, [](double v) { return v >= 0; })) {
      samples.values.resize(row);
      ++samples.lost;
      continue;
    }
    samples.start_ns.push_back(sample.start_ns);
    samples.end_ns.push_back(sample.end_ns);
  }
}

PmSamples PmDevice::decode() {
  PmSamples samples;
  bool is_more = decode_image(samples);
  samples.is_image_full = is_more;
  if (samples.error == cupti::kSuccess)
    read_image(samples, true);
  // What is left would come first in the next burst.
  for (size_t images = 1; is_more && images < kMostImages; ++images) {
    if (clear_image() != cupti::kSuccess)
      break;
    is_more = decode_image(samples);
    read_image(samples, false);
  }
  if (cupti::Result result = clear_image(); samples.error == cupti::kSuccess)
    samples.error = result;
  return samples;
}

} // namespace proton
