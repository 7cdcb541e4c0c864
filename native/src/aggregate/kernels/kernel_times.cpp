#include "aggregate/kernels/kernel_times.h"

namespace proton {

void KernelTimes::start() {
  stop();
  is_on_ = true;
}

void KernelTimes::stop() {
  is_on_ = false;
  known_.clear();
  times_.clear();
}

void KernelTimes::begin_window() {
  for (auto &[name, time] : times_)
    time.window_ns = 0;
}

std::string_view KernelTimes::raw_name(const KernelRecord &record) {
  if (record.variant && record.variant->raw_name)
    return record.variant->raw_name;
  return record.name ? record.name : "";
}

KernelTimes::Time &KernelTimes::entry(const KernelRecord &record) {
  if (record.identity != 0) {
    auto known = known_.find(record.identity);
    if (known != known_.end())
      return *known->second;
  }
  std::string_view name = raw_name(record);
  auto found = times_.find(name);
  if (found == times_.end())
    found = times_.emplace(name, Time{}).first;
  if (known_.size() >= kMostKnown)
    known_.clear();
  if (record.identity != 0)
    known_.emplace(record.identity, &found->second);
  return found->second;
}

void KernelTimes::add(const KernelRecord &record) {
  if (!is_on_ || !has_duration(record))
    return;
  Time &time = entry(record);
  time.window_ns += record.end_ns - record.start_ns;
  time.ever_ns += record.end_ns - record.start_ns;
}

KernelTimes::Time KernelTimes::find(std::string_view raw_name) const {
  auto found = times_.find(raw_name);
  return found == times_.end() ? Time{} : found->second;
}

} // namespace proton
