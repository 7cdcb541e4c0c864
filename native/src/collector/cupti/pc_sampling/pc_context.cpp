#include "collector/cupti/pc_sampling/pc_context.h"

#include <algorithm>
#include <ctime>

#include "driver/cupti/cupti_pc_sampling.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr size_t kMostPcs = 8192;           // of one answer
constexpr int kMostAnswers = 4096;          // of one harvest
constexpr size_t kScratchBytes = 16u << 20; // about 90 000 PCs
constexpr uint32_t kLargestIndex = 4096;    // of a stall reason
constexpr uint32_t kLongestStep = 4;        // doublings at once
constexpr int kMostBusyTries = 40;          // 2 s
constexpr timespec kBetweenBusyTries{0, 50'000'000};

/// Kept for ever: CUPTI may still write there.
void keep(std::unique_ptr<PcBuffer> buffer) {
  static auto *kept = new std::vector<std::unique_ptr<PcBuffer>>;
  kept->push_back(std::move(buffer));
}

} // namespace

void PcHarvest::add(const PcHarvest &other) {
  total += other.total;
  dropped += other.dropped;
  of_driver_kernels += other.of_driver_kernels;
  is_overrun |= other.is_overrun;
  if (error == cupti::kSuccess)
    error = other.error;
}

PcBuffer::PcBuffer(size_t most_pcs, size_t reasons) : stalls_(most_pcs * reasons), pcs_(most_pcs) {
  for (size_t i = 0; i < most_pcs; ++i) {
    pcs_[i].struct_bytes = sizeof pcs_[i];
    pcs_[i].stall_reasons = stalls_.data() + i * reasons;
  }
  samples_.struct_bytes = sizeof samples_;
  samples_.most_pcs = most_pcs;
  samples_.pcs = pcs_.data();
}

size_t PcBuffer::bytes() const {
  return stalls_.size() * sizeof stalls_[0] + pcs_.size() * sizeof pcs_[0];
}

size_t PcContext::bytes() const {
  return (buffer_ ? buffer_->bytes() : 0) + (rest_ ? rest_->bytes() : 0);
}

cupti::PcContextParameters PcContext::parameters() const {
  cupti::PcContextParameters parameters;
  parameters.context = context_;
  return parameters;
}

void PcContext::find_reasons(StallNames &names) {
  size_t count = 0;
  cupti::PcNumStallReasonsParameters number;
  number.context = context_;
  number.count = &count;
  library_.check(cupti_.get_num_stall_reasons(&number), "cuptiPCSamplingGetNumStallReasons");
  std::vector<char> texts(count * cupti::kStallReasonNameBytes);
  std::vector<char *> starts;
  for (size_t i = 0; i < count; ++i)
    starts.push_back(texts.data() + i * cupti::kStallReasonNameBytes);
  std::vector<uint32_t> indices(count);
  cupti::PcStallReasonsParameters list;
  list.context = context_;
  list.count = count;
  list.indices = indices.data();
  list.names = starts.data();
  library_.check(cupti_.get_stall_reasons(&list), "cuptiPCSamplingGetStallReasons");
  indices_.clear();
  reasons_.clear();
  for (size_t i = 0; i < count; ++i) {
    starts[i][cupti::kStallReasonNameBytes - 1] = '\0';
    std::optional<uint16_t> reason = names.find_or_add(starts[i]);
    if (!reason || indices[i] > kLargestIndex)
      continue;
    indices_.push_back(indices[i]);
    if (reasons_.size() <= indices[i])
      reasons_.resize(indices[i] + 1, -1);
    reasons_[indices[i]] = *reason;
  }
}

void PcContext::configure(const PcSamplingOptions &options) {
  std::vector<cupti::PcSetting> settings;
  auto add = [&](cupti::PcAttribute attribute) -> cupti::PcSetting & {
    cupti::PcSetting &setting = settings.emplace_back();
    setting = cupti::PcSetting{};
    setting.attribute = attribute;
    return setting;
  };
  add(cupti::kPcStallReasons).stall_reasons = {indices_.size(), indices_.data()};
  add(cupti::kPcPeriod).number = period_log2_;
  add(cupti::kPcScratchBytes).bytes = kScratchBytes;
  add(cupti::kPcHardwareBytes).bytes = options.hardware_bytes;
  add(cupti::kPcBuffer).buffer = &rest_->samples();
  add(cupti::kPcCollectionMode).mode = cupti::kPcContinuous;
  // With it, what is left can be read after `stop`, where a bare cuptiPCSamplingDisable drops what
  // its one buffer has no room for; and buffers are made in `start`, not in the target's next
  // launch.
  add(cupti::kPcStartStopControl).number = 1;
  cupti::PcConfigurationParameters parameters;
  parameters.context = context_;
  parameters.setting_count = settings.size();
  parameters.settings = settings.data();
  library_.check(cupti_.set_configuration_attribute(&parameters),
                 "cuptiPCSamplingSetConfigurationAttribute");
}

void PcContext::enable(const PcSamplingOptions &options, uint32_t period_log2, bool starts,
                       StallNames &names) {
  period_log2_ = period_log2;
  cupti::PcContextParameters on = parameters();
  cupti::Result result = cupti_.enable(&on);
  // A program that has just ended holds the hardware for a moment longer.
  for (int i = 0; result == cupti::kErrorHardwareBusy && i < kMostBusyTries; ++i) {
    nanosleep(&kBetweenBusyTries, nullptr);
    result = cupti_.enable(&on);
  }
  library_.check(result, "cuptiPCSamplingEnable");
  try {
    find_reasons(names);
    buffer_ = std::make_unique<PcBuffer>(kMostPcs, indices_.size());
    rest_ = std::make_unique<PcBuffer>(kMostPcs, indices_.size());
    configure(options);
    if (starts)
      library_.check(start(), "cuptiPCSamplingStart");
  } catch (...) {
    cupti::PcContextParameters off = parameters();
    cupti_.disable(&off);
    throw;
  }
}

cupti::Result PcContext::start() noexcept {
  if (is_started_)
    return cupti::kSuccess;
  cupti::PcContextParameters on = parameters();
  cupti::Result result = cupti_.start(&on);
  is_started_ = result == cupti::kSuccess;
  return result;
}

cupti::Result PcContext::stop() noexcept {
  if (!is_started_)
    return cupti::kSuccess;
  is_started_ = false;
  cupti::PcContextParameters off = parameters();
  return cupti_.stop(&off);
}

void PcContext::add(const cupti::PcSamples &samples, PcCounts &counts, PcHarvest &harvest) {
  size_t count = std::min(samples.pc_count, samples.most_pcs);
  for (size_t i = 0; i < count; ++i)
    counts.add(samples.pcs[i], reasons_);
  has_come_ |= samples.total != 0;
  harvest.total += samples.total;
  harvest.dropped += samples.dropped;
  harvest.of_driver_kernels += samples.of_driver_kernels;
  harvest.is_overrun |= samples.is_hardware_buffer_full != 0;
}

PcHarvest PcContext::harvest(PcCounts &counts) {
  PcHarvest harvest;
  cupti::PcSamples &samples = buffer_->samples();
  cupti::PcGetDataParameters get;
  get.context = context_;
  get.samples = &samples;
  for (int answers = 0; answers < kMostAnswers; ++answers) {
    samples.total = samples.dropped = samples.of_driver_kernels = 0;
    samples.pc_count = samples.remaining_pcs = 0;
    samples.is_hardware_buffer_full = 0;
    cupti::Result result = cupti_.get_data(&get);
    add(samples, counts, harvest);
    harvest.is_overrun |= result == cupti::kErrorOutOfMemory;
    if (result != cupti::kSuccess && result != cupti::kErrorOutOfMemory)
      harvest.error = result;
    bool goes_on = result == cupti::kSuccess && samples.pc_count != 0 && samples.remaining_pcs != 0;
    if (!goes_on)
      break;
  }
  return harvest;
}

PcHarvest PcContext::disable(PcCounts &counts) {
  PcHarvest all;
  all.error = stop();
  all.add(harvest(counts));
  PcHarvest rest;
  cupti::PcContextParameters off = parameters();
  rest.error = cupti_.disable(&off);
  add(rest_->samples(), counts, rest);
  all.add(rest);
  all.is_overrun = false; // sampling has ended
  if (rest.error != cupti::kSuccess)
    keep(std::move(rest_));
  buffer_.reset();
  rest_.reset();
  return all;
}

void PcContext::enable_longer(const PcSamplingOptions &options, bool starts, StallNames &names) {
  step_ = has_come_ ? 1 : std::min(2 * step_, kLongestStep);
  has_come_ = false;
  enable(options, std::min(period_log2_ + step_, cupti::kLargestPeriodLog2), starts, names);
}

namespace {

constexpr int64_t kTargetPerSecond = 16'000'000;
constexpr uint32_t kUnknownLog2 = 14;

} // namespace

uint32_t automatic_period_log2(int64_t multiprocessors, int64_t clock_rate_khz) noexcept {
  if (multiprocessors <= 0 || clock_rate_khz <= 0)
    return kUnknownLog2;
  // A multiprocessor makes one sample in each period.
  int64_t cycles_per_second = multiprocessors * clock_rate_khz * 1000;
  uint32_t exponent = cupti::kSmallestPeriodLog2;
  while (exponent < cupti::kLargestPeriodLog2 && (cycles_per_second >> exponent) > kTargetPerSecond)
    ++exponent;
  return exponent;
}

} // namespace proton
