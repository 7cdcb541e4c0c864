#include "aggregate/times/pause_list.h"

#include <algorithm>

namespace proton {

void PauseList::pause(int64_t now_ns) {
  if (pauses_.size() == kMost) // half at once, so that forgetting costs nothing per pause
    pauses_.erase(pauses_.begin(), pauses_.begin() + kMost / 2);
  pauses_.push_back({now_ns, INT64_MAX});
}

void PauseList::resume(int64_t now_ns) {
  if (!pauses_.empty() && pauses_.back().end_ns == INT64_MAX)
    pauses_.back().end_ns = now_ns;
}

int64_t PauseList::sum_within(int64_t start_ns, int64_t end_ns) const {
  int64_t sum_ns = 0;
  auto pause = std::upper_bound(pauses_.begin(), pauses_.end(), start_ns,
                                [](int64_t at, const Pause &entry) { return at < entry.end_ns; });
  for (; pause != pauses_.end() && pause->start_ns < end_ns; ++pause)
    sum_ns += std::min(pause->end_ns, end_ns) - std::max(pause->start_ns, start_ns);
  return sum_ns;
}

} // namespace proton
