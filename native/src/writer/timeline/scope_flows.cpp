#include "writer/timeline/scope_flows.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace proton {

// Inner scopes end first, and claim their launches before the scopes around them.
void ScopeFlows::claim() {
  for (const Launch &launch : launches_) {
    waiting_[launch.thread].emplace(launch.at_ns, launch.launch);
    oldest_.push_back(launch);
  }
  launches_.clear();
  std::sort(scopes_.begin(), scopes_.end(), [](const Scope &left, const Scope &right) {
    return std::tuple(left.end_ns, right.start_ns) < std::tuple(right.end_ns, left.start_ns);
  });
  for (const Scope &scope : scopes_) {
    auto of_thread = waiting_.find(scope.thread);
    if (of_thread == waiting_.end())
      continue;
    auto first = of_thread->second.lower_bound(scope.start_ns);
    auto last = of_thread->second.upper_bound(scope.end_ns);
    for (auto each = first; each != last; ++each)
      claimed_.emplace(each->second, scope);
    of_thread->second.erase(first, last);
  }
  scopes_.clear();
}

void ScopeFlows::trim() {
  for (; oldest_.size() > kMaxWaiting; oldest_.pop_front()) {
    const Launch &launch = oldest_.front();
    claimed_.erase(launch.launch);
    auto [first, last] = waiting_[launch.thread].equal_range(launch.at_ns);
    auto found =
        std::find_if(first, last, [&](const auto &each) { return each.second == launch.launch; });
    if (found != last)
      waiting_[launch.thread].erase(found);
  }
  if (work_.size() > kMaxWaiting)
    work_.erase(work_.begin(), work_.end() - static_cast<ptrdiff_t>(kMaxWaiting));
}

std::vector<ScopeFlows::Arrow> ScopeFlows::settle() {
  claim();
  std::vector<Arrow> arrows;
  std::vector<Work> later;
  for (const Work &work : work_) {
    auto found = claimed_.find(work.launch);
    if (found == claimed_.end()) {
      later.push_back(work);
      continue;
    }
    const Scope scope = found->second;
    if (!work.is_of_graph)
      claimed_.erase(found);
    uint64_t &newest = newest_[work.row];
    bool goes_on = work.is_of_graph && newest == scope.number + 1;
    newest = scope.number + 1;
    if (!goes_on)
      arrows.push_back({scope.number, scope.row, scope.start_ns, work.row, work.start_ns});
  }
  work_ = std::move(later);
  trim();
  return arrows;
}

} // namespace proton
