#include "aggregate/kernels/counter_log.h"

#include <algorithm>
#include <utility>

namespace proton {
namespace {

bool has_phase(const std::vector<uint32_t> &phases, uint32_t phase) {
  return std::find(phases.begin(), phases.end(), phase) != phases.end();
}

} // namespace

void CounterLog::begin(int32_t device, int64_t at_ns) {
  Burst burst;
  burst.device = device;
  burst.start_ns = at_ns;
  bursts_.push_back(std::move(burst));
}

bool CounterLog::end(int32_t device, std::shared_ptr<const CounterBurst> burst, uint32_t phase) {
  auto open = std::find_if(bursts_.begin(), bursts_.end(), [&](const Burst &each) {
    return each.device == device && !each.samples;
  });
  if (open == bursts_.end())
    return false; // the session began meanwhile
  bool is_other = metrics_ && burst->metrics && *metrics_ != *burst->metrics;
  if (burst->start_ns.empty() || is_other) {
    bursts_.erase(open);
    return false;
  }
  open->start_ns = burst->start_ns.front();
  open->end_ns = burst->end_ns.back();
  open->last_phase = phase;
  std::erase_if(open->kernels, [&](const Kernel &kernel) {
    return kernel.end_ns <= open->start_ns || kernel.start_ns >= open->end_ns;
  });
  open->kernels.shrink_to_fit();
  // A phase with no kernel left has nothing to take, so it must not wait for that.
  std::erase_if(open->phases, [&](uint32_t each) {
    return std::none_of(open->kernels.begin(), open->kernels.end(),
                        [&](const Kernel &kernel) { return kernel.phase == each; });
  });
  metrics_ = burst->metrics;
  open->samples = std::move(burst);
  if (!is_full())
    return false;
  thin();
  return true;
}

bool CounterLog::is_full() const {
  size_t kernels = 0;
  for (const Burst &burst : bursts_)
    kernels += burst.kernels.size();
  return bursts_.size() > most_bursts_ || (kernels > most_kernels_ && bursts_.size() > 1);
}

void CounterLog::thin() {
  size_t kept = 0;
  for (size_t i = 0; i < bursts_.size(); i += 2)
    if (size_t to = kept++; to != i)
      bursts_[to] = std::move(bursts_[i]);
  dropped_bursts_ += bursts_.size() - kept;
  bursts_.resize(kept);
}

void CounterLog::add(uint32_t phase, NodeIndex node, int32_t device, int64_t start_ns,
                     int64_t end_ns) {
  // Bursts do not overlap, and records come nearly in the order of time: this looks at one or two.
  for (auto burst = bursts_.rbegin(); burst != bursts_.rend() && burst->end_ns > start_ns; ++burst)
    if (burst->device == device && end_ns > burst->start_ns) {
      burst->kernels.push_back({node, phase, start_ns, end_ns});
      if (!has_phase(burst->phases, phase))
        burst->phases.push_back(phase);
    }
}

void CounterLog::forget_phase(uint32_t phase) {
  for (Burst &burst : bursts_) {
    if (std::erase(burst.phases, phase) == 0)
      continue;
    for (Kernel &kernel : burst.kernels) // the current phase goes on under its number
      if (kernel.phase == phase)
        kernel.phase = kNoPhase;
  }
}

void CounterLog::forget_before(uint32_t phase) {
  std::erase_if(bursts_,
                [&](const Burst &burst) { return burst.samples && burst.last_phase < phase; });
}

CounterLog::Rest CounterLog::rest_of(uint32_t phase) const {
  Rest rest = Rest::kNothing;
  for (const Burst &burst : bursts_) {
    if (!has_phase(burst.phases, phase))
      continue;
    if (!burst.samples)
      return Rest::kOpen;
    rest = Rest::kWhole;
  }
  return rest;
}

std::vector<JoinedBurst> CounterLog::take(uint32_t phase, bool is_part) {
  std::vector<JoinedBurst> taken;
  for (Burst &burst : bursts_) {
    if (!burst.samples || std::erase(burst.phases, phase) == 0)
      continue;
    JoinedBurst joined = join(burst, phase, is_part);
    if (!joined.nodes.empty())
      taken.push_back(std::move(joined));
  }
  return taken;
}

JoinedBurst CounterLog::join(const Burst &burst, uint32_t phase, bool is_part) {
  JoinedBurst joined;
  int64_t from_ns = kOpen, to_ns = 0; // of the phase's kernels
  for (const Kernel &kernel : burst.kernels)
    if (kernel.phase == phase) {
      from_ns = std::min(from_ns, kernel.start_ns);
      to_ns = std::max(to_ns, kernel.end_ns);
    }
  if (from_ns == kOpen)
    return joined; // they ran between the begin of the burst and its first sample
  const std::vector<int64_t> &starts = burst.samples->start_ns, &ends = burst.samples->end_ns;
  auto first = is_part ? std::upper_bound(ends.begin(), ends.end(), from_ns) : ends.begin();
  auto end = is_part ? std::lower_bound(starts.begin(), starts.end(), to_ns) : starts.end();
  joined.burst = burst.samples;
  joined.device = burst.device;
  joined.first_sample = static_cast<size_t>(first - ends.begin());
  joined.end_sample = static_cast<size_t>(end - starts.begin());
  if (joined.first_sample >= joined.end_sample)
    return joined; // they ran in a gap
  from_ns = std::min(from_ns, starts[joined.first_sample]);
  to_ns = std::max(to_ns, ends[joined.end_sample - 1]);
  for (const Kernel &kernel : burst.kernels) {
    if (kernel.end_ns <= from_ns || kernel.start_ns >= to_ns)
      continue;
    joined.nodes.push_back(kernel.node);
    joined.is_own.push_back(kernel.phase == phase ? 1 : 0);
    joined.kernel_start_ns.push_back(kernel.start_ns);
    joined.kernel_end_ns.push_back(kernel.end_ns);
  }
  return joined;
}

std::vector<std::string> CounterLog::metrics() const {
  return metrics_ ? *metrics_ : std::vector<std::string>();
}

} // namespace proton
