#include "collector/cupti/ranges/range_context.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

/// The number that is a range's name; false for another name.
bool number_of(const char *name, size_t &number) {
  if (!name)
    return false;
  const char *end = name + std::strlen(name);
  auto parsed = std::from_chars(name, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

} // namespace

RangeContext::RangeContext(const CuptiLibrary &library, const CuptiRangeProfiler &cupti,
                           void *context, int32_t device,
                           const std::vector<std::vector<std::string>> &sets)
    : library_(library), cupti_(cupti), device_(device) {
  schedule(sets);
  start_ns_.reserve(kMostRanges);
  end_ns_.reserve(kMostRanges);
  cupti::RangeEnableParameters enable;
  enable.context = context;
  library.check(cupti.enable(&enable), "cuptiRangeProfilerEnable");
  profiler_ = enable.profiler;
  try {
    cupti::RangeDataSizeParameters size;
    size.profiler = profiler_;
    size.metrics = host_->metric_names();
    size.metric_count = host_->metrics().size();
    size.most_ranges = kMostRanges;
    size.most_tree_nodes = kMostRanges;
    library.check(cupti.get_data_size(&size), "cuptiRangeProfilerGetCounterDataSize");
    image_.resize(size.data_bytes);
  } catch (...) {
    disable();
    throw;
  }
}

void RangeContext::schedule(const std::vector<std::vector<std::string>> &sets) {
  std::string chip = chip_name(library_, device_);
  std::string why;
  for (const std::vector<std::string> &metrics : sets) {
    try {
      host_ =
          std::make_unique<CuptiProfilerHost>(library_, cupti::kProfilerOfRanges, chip, metrics);
      if (host_->passes() == 1)
        return;
      why = "the metrics take " + std::to_string(host_->passes()) +
            " passes on this GPU, and the program runs once: choose fewer by metrics=";
    } catch (const Error &error) {
      why = error.what();
    }
  }
  throw Error(ErrorCode::kUnavailable, why);
}

RangeContext::~RangeContext() { disable(); }

void RangeContext::disable() noexcept {
  if (!profiler_)
    return;
  cupti::RangeParameters parameters;
  parameters.profiler = profiler_;
  if (is_open_)
    cupti_.pop(&parameters);
  if (is_started_) {
    cupti::RangeStopParameters stop;
    stop.profiler = profiler_;
    cupti_.stop(&stop);
  }
  cupti_.disable(&parameters);
  is_open_ = is_started_ = false;
  profiler_ = nullptr;
}

cupti::Result RangeContext::start() noexcept {
  cupti::RangeDataParameters data;
  data.profiler = profiler_;
  data.data_bytes = image_.size();
  data.data = image_.data();
  cupti::Result result = cupti_.initialize_data(&data);
  if (result != cupti::kSuccess)
    return result;
  cupti::RangeConfigParameters config;
  config.profiler = profiler_;
  config.config_bytes = host_->config().size();
  config.config = host_->config().data();
  config.data_bytes = image_.size();
  config.data = image_.data();
  config.most_ranges = kMostRanges;
  result = cupti_.set_config(&config);
  if (result != cupti::kSuccess)
    return result;
  cupti::RangeParameters parameters;
  parameters.profiler = profiler_;
  result = cupti_.start(&parameters);
  is_started_ = result == cupti::kSuccess;
  return result;
}

cupti::Result RangeContext::push() noexcept {
  cupti::Result result = is_started_ ? cupti::kSuccess : start();
  if (result != cupti::kSuccess)
    return result;
  char name[24] = {};
  std::to_chars(name, name + sizeof name - 1, start_ns_.size());
  cupti::RangePushParameters parameters;
  parameters.profiler = profiler_;
  parameters.name = name;
  int64_t now_ns = monotonic_ns();
  result = cupti_.push(&parameters);
  if (result == cupti::kSuccess) {
    is_open_ = true;
    start_ns_.push_back(now_ns); // there is room
  }
  return result;
}

cupti::Result RangeContext::pop() noexcept {
  if (!is_open_)
    return cupti::kSuccess;
  cupti::RangeParameters parameters;
  parameters.profiler = profiler_;
  end_ns_.push_back(monotonic_ns());
  is_open_ = false;
  return cupti_.pop(&parameters);
}

CountedRanges RangeContext::finish() {
  CountedRanges ranges;
  if (!is_started_)
    return ranges;
  pop();
  cupti::RangeStopParameters stop;
  stop.profiler = profiler_;
  ranges.error = cupti_.stop(&stop);
  is_started_ = false;
  if (ranges.error == cupti::kSuccess)
    read(ranges);
  ranges.lost = start_ns_.size() - ranges.start_ns.size();
  start_ns_.clear();
  end_ns_.clear();
  return ranges;
}

void RangeContext::read(CountedRanges &ranges) {
  cupti::RangeDecodeParameters decode;
  decode.profiler = profiler_;
  ranges.error = cupti_.decode_data(&decode);
  if (ranges.error != cupti::kSuccess)
    return;
  cupti::RangeDataInfoParameters info;
  info.data = image_.data();
  info.data_bytes = image_.size();
  ranges.error = cupti_.get_data_info(&info);
  if (ranges.error != cupti::kSuccess)
    return;
  // By their names, because dropped ones leave no gap. In the order of time.
  std::vector<std::pair<size_t, size_t>> found;
  for (size_t index = 0; index < info.ranges; ++index) {
    cupti::RangeInfoParameters range;
    range.data = image_.data();
    range.data_bytes = image_.size();
    range.index = index;
    size_t number = 0;
    if (cupti_.get_range_info(&range) == cupti::kSuccess && number_of(range.name, number) &&
        number < end_ns_.size())
      found.emplace_back(number, index);
  }
  std::sort(found.begin(), found.end());
  std::vector<double> row(host_->metrics().size());
  for (auto [number, index] : found) {
    cupti::Result result = host_->evaluate(image_.data(), image_.size(), index, row.data());
    if (result != cupti::kSuccess) {
      ranges.error = result;
      continue;
    }
    ranges.start_ns.push_back(start_ns_[number]);
    ranges.end_ns.push_back(end_ns_[number]);
    ranges.values.insert(ranges.values.end(), row.begin(), row.end());
  }
}

} // namespace proton
