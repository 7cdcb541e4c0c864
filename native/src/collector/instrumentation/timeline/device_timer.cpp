#include "collector/instrumentation/timeline/device_timer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>

#include "support/clock.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr int kTries = 5;
constexpr int64_t kLongNs = 2'000'000; // the device is busy: further tries take as long
constexpr double kWorstDrift = 1e-4;   // a quartz is a few ten parts in a million off

const std::string kTimerPurpose = "comparing the device's timer with the host's clock";

int64_t less(int64_t monotonic_ns, uint64_t timer_ns) {
  return static_cast<int64_t>(static_cast<uint64_t>(monotonic_ns) - timer_ns);
}

} // namespace

void DeviceTimer::observe() noexcept {
  int64_t now_ns = monotonic_ns();
  if (tried_ns_ != 0 && now_ns - tried_ns_ < between_ns_)
    return;
  tried_ns_ = now_ns;
  try {
    read();
  } catch (const std::exception &error) { // scopes stay where the older readings put them
    try {
      failure_ = error.what();
    } catch (...) { // no memory for the reason
    }
  }
}

void DeviceTimer::read() {
  if (!anchors_)
    anchors_ = static_cast<device::ClockAnchor *>(
        context_.allocate_host(context_.processors() * sizeof(device::ClockAnchor), kTimerPurpose));
  std::optional<Reading> best;
  int64_t start_ns = monotonic_ns();
  for (int i = 0; i < kTries && monotonic_ns() - start_ns < kLongNs; ++i) {
    std::optional<Reading> reading = read_once();
    if (reading && (!best || reading->offset.uncertainty_ns < best->offset.uncertainty_ns))
      best = reading;
  }
  if (!best)
    throw Error(ErrorCode::kUnavailable,
                kTimerPurpose +
                    " failed: no multiprocessor noted its timer; scopes inside kernels are "
                    "placed by what the timer says");
  failure_.clear();
  if (readings_ != 0 && !is_worth_keeping(*best))
    return;
  if (readings_ == 0)
    first_ = *best;
  newest_ = *best;
  ++readings_;
}

std::optional<DeviceTimer::Reading> DeviceTimer::read_once() {
  const CudaWork &work = context_.work();
  RelaxedCapture relaxed(work.functions());
  std::memset(anchors_, 0, context_.processors() * sizeof(device::ClockAnchor));
  device::AnchorTask task{};
  task.anchors = anchors_;
  task.processors = context_.processors();
  int64_t before_ns = monotonic_ns();
  work.check(context_.anchor(task, context_.side_stream()), "cuLaunchKernel", kTimerPurpose);
  work.check(work.functions().stream_synchronize(context_.side_stream()), "cuStreamSynchronize",
             kTimerPurpose);
  int64_t after_ns = monotonic_ns();
  uint64_t first_ns = UINT64_MAX, last_ns = 0;
  for (uint32_t i = 0; i < context_.processors(); ++i) {
    if (anchors_[i].ns == 0)
      continue;
    first_ns = std::min(first_ns, anchors_[i].ns);
    last_ns = std::max(last_ns, anchors_[i].ns);
  }
  if (last_ns == 0)
    return std::nullopt;
  // The first one was noted after one reading of the host's clock, the last one before the other.
  int64_t least_ns = less(before_ns, first_ns), most_ns = less(after_ns, last_ns);
  int64_t apart_ns = std::max<int64_t>(most_ns - least_ns, 0);
  return Reading{first_ns + (last_ns - first_ns) / 2,
                 {least_ns + (most_ns - least_ns) / 2, (apart_ns + 1) / 2}};
}

bool DeviceTimer::is_worth_keeping(const Reading &reading) const noexcept {
  auto since_ns = static_cast<double>(reading.timer_ns - newest_.timer_ns);
  double grown_ns = static_cast<double>(newest_.offset.uncertainty_ns) + since_ns * kWorstDrift;
  return static_cast<double>(reading.offset.uncertainty_ns) <= grown_ns;
}

double DeviceTimer::drift() const noexcept {
  int64_t moved_ns = newest_.offset.offset_ns - first_.offset.offset_ns;
  int64_t unsure_ns = newest_.offset.uncertainty_ns + first_.offset.uncertainty_ns;
  if (newest_.timer_ns <= first_.timer_ns || std::abs(moved_ns) <= unsure_ns)
    return 0;
  return static_cast<double>(moved_ns) / static_cast<double>(newest_.timer_ns - first_.timer_ns);
}

TimerOffset DeviceTimer::at(uint64_t timer_ns) const noexcept {
  TimerOffset offset = newest_.offset;
  if (readings_ != 0)
    offset.offset_ns += std::llround(
        drift() * static_cast<double>(static_cast<int64_t>(timer_ns - newest_.timer_ns)));
  return offset;
}

DeviceTimerFacts DeviceTimer::facts() const {
  return {context_.device(), newest_.offset, readings_, drift() * 1e6, failure_};
}

void DeviceTimer::free() noexcept {
  if (anchors_)
    context_.free_host(anchors_);
  anchors_ = nullptr;
}

} // namespace proton
