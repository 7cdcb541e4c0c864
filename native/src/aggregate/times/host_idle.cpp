#include "aggregate/times/host_idle.h"

#include <algorithm>
#include <limits>

#include "calltree/host_rows.h"

namespace proton {
namespace {

constexpr int64_t kEver = std::numeric_limits<int64_t>::max();

/// Gives `take` the time that each sample shares with gaps; both are in order. Removes what lies
/// before the end of the other list.
template <typename Samples, typename Gaps, typename Take>
void intersect(Samples &samples, Gaps &gaps, Take take) {
  while (!samples.empty() && !gaps.empty()) {
    auto &sample = samples.front();
    const Gap &gap = gaps.front();
    int64_t shared_ns =
        std::min(sample.end_ns, gap.end_ns) - std::max(sample.start_ns, gap.start_ns);
    if (shared_ns > 0)
      take(sample.node, shared_ns);
    if (sample.end_ns <= gap.end_ns)
      samples.pop_front();
    else
      gaps.pop_front();
  }
}

} // namespace

void HostIdle::add_gap(const Gap &gap) {
  gaps_.push_back(gap);
  if (gaps_.size() > kMostWaiting) // of a span without a sample, such as a long call into C code
    gaps_.pop_front();
}

void HostIdle::match() {
  intersect(samples_, gaps_,
            [this](NodeIndex node, int64_t shared_ns) { idle_[node].known_ns += shared_ns; });
}

void HostIdle::add_work(int64_t start_ns, int64_t end_ns) {
  if (!work_.add(start_ns, end_ns, 0))
    return;
  if (!has_closed_)
    add_gap({-kEver, work_.first_start_ns(), 0});
  has_closed_ = true;
  work_.close_older([this](const Gap &gap) { add_gap(gap); });
  match();
}

void HostIdle::add_sample(NodeIndex node, int64_t start_ns, int64_t end_ns) {
  if (!samples_.empty() && samples_.back().node == node && samples_.back().end_ns == start_ns) {
    samples_.back().end_ns = end_ns;
    return;
  }
  samples_.push_back({start_ns, end_ns, node});
  if (samples_.size() <= kMostWaiting)
    return;
  // No device has worked for many minutes.
  const Span &oldest = samples_.front();
  idle_[oldest.node].known_ns += oldest.end_ns - oldest.start_ns;
  samples_.pop_front();
}

void HostIdle::publish(CallPathTree &tree) {
  if (work_.empty())
    return;
  match();
  std::deque<Span> samples = samples_;
  std::deque<Gap> gaps = gaps_;
  if (!has_closed_)
    gaps.push_back({-kEver, work_.first_start_ns(), 0});
  work_.for_each_open_gap([&](const Gap &gap) { gaps.push_back(gap); });
  gaps.push_back({work_.last_end_ns(), kEver, 0});
  std::unordered_map<NodeIndex, int64_t> now_ns;
  for (const auto &[node, idle] : idle_)
    now_ns[node] = idle.known_ns;
  intersect(samples, gaps, [&](NodeIndex node, int64_t shared_ns) { now_ns[node] += shared_ns; });
  size_t column = tree.metrics().builtin(kIdle, Aggregation::kInclusive);
  for (const auto &[node, idle_ns] : now_ns) {
    Idle &idle = idle_[node];
    if (idle.shown_ns != idle_ns)
      tree.metrics().add_int(column, node, idle_ns - idle.shown_ns);
    idle.shown_ns = idle_ns;
  }
}

} // namespace proton
