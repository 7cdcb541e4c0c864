#include "aggregate/kernels/counter_log.h"

#include <algorithm>
#include <utility>

namespace proton {

void CounterLog::begin(int32_t device, int64_t at_ns) {
  Burst burst;
  burst.device = device;
  burst.start_ns = at_ns;
  bursts_.push_back(std::move(burst));
}

bool CounterLog::end(int32_t device, std::shared_ptr<const CounterBurst> burst) {
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
  std::erase_if(open->kernels, [&](const Kernel &kernel) {
    return kernel.end_ns <= open->start_ns || kernel.start_ns >= open->end_ns;
  });
  open->kernels.shrink_to_fit();
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
    if (burst->device == device && end_ns > burst->start_ns)
      burst->kernels.push_back({node, phase, start_ns, end_ns});
}

void CounterLog::forget_phase(uint32_t phase) {
  for (Burst &burst : bursts_)
    std::erase_if(burst.kernels, [&](const Kernel &kernel) { return kernel.phase == phase; });
}

std::vector<JoinedBurst> CounterLog::take(uint32_t phase) {
  std::vector<JoinedBurst> taken;
  for (Burst &burst : bursts_) {
    if (!burst.samples)
      continue;
    JoinedBurst joined{burst.samples, burst.device, {}, {}, {}};
    for (const Kernel &kernel : burst.kernels) {
      if (kernel.phase != phase)
        continue;
      joined.nodes.push_back(kernel.node);
      joined.kernel_start_ns.push_back(kernel.start_ns);
      joined.kernel_end_ns.push_back(kernel.end_ns);
    }
    if (joined.nodes.empty())
      continue;
    taken.push_back(std::move(joined));
    std::erase_if(burst.kernels, [&](const Kernel &kernel) { return kernel.phase == phase; });
    if (burst.kernels.empty()) // no other phase needs it
      burst.device = kNone;
  }
  std::erase_if(bursts_, [](const Burst &burst) { return burst.device == kNone; });
  return taken;
}

std::vector<std::string> CounterLog::metrics() const {
  return metrics_ ? *metrics_ : std::vector<std::string>();
}

} // namespace proton
