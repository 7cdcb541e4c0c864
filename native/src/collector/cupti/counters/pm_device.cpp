#include "collector/cupti/counters/pm_device.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "collector/cupti/counters/evaluation.h"
#include "support/clock.h"
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

PmDevice::PmDevice(const CuptiLibrary &library, const CuptiPmSampling &cupti, Evaluator &evaluator,
                   int32_t device, const CounterOptions &options)
    : library_(library), cupti_(cupti), evaluator_(evaluator), device_(device),
      chip_(chip_name(library, device)) {
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
  std::string why;
  for (const std::vector<std::string> &metrics : sets) {
    try {
      host_ = std::make_unique<CuptiProfilerHost>(library_, cupti::kProfilerOfPmSamples, chip_,
                                                  metrics);
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
  image_ = evaluator_.share(size.data_bytes);
  library_.check(clear_image(), "cuptiPmSamplingCounterDataImageInitialize");
}

cupti::Result PmDevice::clear_image() noexcept {
  cupti::PmDataParameters parameters;
  parameters.sampling = sampling_;
  parameters.data_bytes = image_.bytes;
  parameters.data = image_.data;
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

bool PmDevice::decode_image(PmSamples &samples) {
  int64_t before_ns = monotonic_ns();
  cupti::PmDecodeParameters parameters;
  parameters.sampling = sampling_;
  parameters.data = image_.data;
  parameters.data_bytes = image_.bytes;
  cupti::Result result = cupti_.decode_data(&parameters);
  samples.decode_ns += monotonic_ns() - before_ns;
  samples.is_buffer_full |= parameters.is_overflown != 0;
  library_.check(result, "cuptiPmSamplingDecodeData");
  return parameters.stop == cupti::kPmDataFull;
}

size_t PmDevice::count_samples() const {
  cupti::PmDataInfoParameters info;
  info.data = image_.data;
  info.data_bytes = image_.bytes;
  library_.check(cupti_.get_data_info(&info), "cuptiPmSamplingGetCounterDataInfo");
  return info.completed_samples;
}

std::vector<uint64_t> PmDevice::read_times(PmSamples &samples) const {
  std::vector<uint64_t> timed;
  int64_t before_ns = monotonic_ns();
  size_t count = count_samples();
  for (size_t i = 1; i < count; ++i) { // the first began before the burst
    cupti::PmSampleInfoParameters sample;
    sample.sampling = sampling_;
    sample.data = image_.data;
    sample.data_bytes = image_.bytes;
    sample.index = i;
    bool is_known = cupti_.get_sample_info(&sample) == cupti::kSuccess && sample.start_ns != 0 &&
                    sample.end_ns > sample.start_ns &&
                    (samples.end_ns.empty() || sample.start_ns >= samples.end_ns.back());
    if (!is_known) {
      ++samples.lost;
      continue;
    }
    timed.push_back(i);
    samples.start_ns.push_back(sample.start_ns);
    samples.end_ns.push_back(sample.end_ns);
  }
  samples.info_ns += monotonic_ns() - before_ns;
  return timed;
}

std::vector<double> PmDevice::values_of(const std::vector<uint64_t> &samples) {
  if (!evaluator_.is_usable())
    return evaluate_samples(*host_, image_.data, image_.bytes, samples);
  std::vector<double> values = evaluator_.evaluate(image_, chip_, metrics(), samples);
  bool is_any = std::any_of(values.begin(), values.end(), [](double v) { return !std::isnan(v); });
  if (!is_any && !samples.empty()) {
    evaluator_.give_up();
    throw Error(ErrorCode::kUnavailable, "the process that evaluates counters found no values");
  }
  return values;
}

void PmDevice::read_image(PmSamples &samples) {
  std::vector<uint64_t> timed = read_times(samples);
  int64_t before_ns = monotonic_ns();
  samples.values = values_of(timed);
  samples.evaluate_ns += monotonic_ns() - before_ns;
  size_t width = metrics().size(), kept = 0;
  for (size_t i = 0; i < timed.size(); ++i) {
    auto row = samples.values.begin() + static_cast<std::ptrdiff_t>(i * width);
    auto end = row + static_cast<std::ptrdiff_t>(width);
    if (!std::all_of(row, end, [](double value) { return value >= 0; }))
      continue;
    samples.start_ns[kept] = samples.start_ns[i];
    samples.end_ns[kept] = samples.end_ns[i];
    std::copy(row, end, samples.values.begin() + static_cast<std::ptrdiff_t>(kept * width));
    ++kept;
  }
  samples.lost += timed.size() - kept;
  samples.start_ns.resize(kept);
  samples.end_ns.resize(kept);
  samples.values.resize(kept * width);
}

// What is left would come first in the next burst; it has no times.
void PmDevice::skip_rest(PmSamples &samples) {
  bool is_more = true;
  for (size_t images = 1; is_more && images < kMostImages; ++images) {
    if (clear_image() != cupti::kSuccess)
      return;
    is_more = decode_image(samples);
    samples.lost += count_samples();
  }
}

PmSamples PmDevice::decode() {
  PmSamples samples;
  try {
    library_.check(clear_image(), "cuptiPmSamplingCounterDataImageInitialize");
    samples.is_image_full = decode_image(samples);
    read_image(samples);
  } catch (const Error &error) {
    samples.start_ns.clear();
    samples.end_ns.clear();
    samples.values.clear();
    samples.error = error.what();
  }
  try {
    if (samples.is_image_full)
      skip_rest(samples);
  } catch (const Error &) { // the next burst says it
  }
  return samples;
}

} // namespace proton
