#include "aggregate/events/scoped_launches.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace proton {
namespace {

size_t bytes_of(const TimelineLaunch &scopes) {
  return sizeof(scopes) + scopes.programs.size() * sizeof(TimelineProgram) +
         scopes.instances.size() * sizeof(TimelineScope);
}

} // namespace

void ScopedLaunches::take_waiting(Launch &launch, Released &to) {
  for (HeldScopes &held : std::exchange(launch.waiting, {})) {
    waiting_bytes_ -= bytes_of(held.scopes);
    to.push_back(std::move(held));
  }
}

ScopedLaunches::Launches::iterator ScopedLaunches::erase(Launches::iterator launch) {
  for (const HeldScopes &held : launch->second.waiting)
    waiting_bytes_ -= bytes_of(held.scopes);
  return launches_.erase(launch);
}

ScopedLaunches::Released ScopedLaunches::kernel_ran(uint64_t correlation_id, int64_t start_ns,
                                                    int64_t end_ns) {
  Released released;
  auto found = launches_.find(correlation_id);
  if (found == launches_.end())
    return released;
  Launch &launch = found->second;
  take_waiting(launch, released);
  for (HeldScopes &held : released)
    held.scopes.put_into_kernel(start_ns, end_ns);
  launch.has_run = true;
  launch.start_ns = start_ns;
  launch.end_ns = end_ns;
  if (!released.empty())
    erase(found);
  return released;
}

ScopedLaunches::Released ScopedLaunches::add(uint64_t correlation_id, HeldScopes held) {
  Released released;
  auto found = launches_.find(correlation_id);
  if (found == launches_.end() || found->second.has_run) {
    if (found != launches_.end())
      held.scopes.put_into_kernel(found->second.start_ns, found->second.end_ns);
    released.push_back(std::move(held));
    return released;
  }
  size_t bytes = bytes_of(held.scopes);
  found->second.waiting.push_back(std::move(held));
  waiting_bytes_ += bytes;
  for (auto oldest = launches_.begin(); waiting_bytes_ > kMaxBytes && oldest != launches_.end();) {
    bool waits = !oldest->second.waiting.empty();
    take_waiting(oldest->second, released);
    oldest = waits ? erase(oldest) : std::next(oldest);
  }
  return released;
}

void ScopedLaunches::end_scopes(uint64_t correlation_id) {
  auto found = launches_.find(correlation_id);
  if (found != launches_.end() && found->second.has_run)
    erase(found);
}

ScopedLaunches::Released ScopedLaunches::without_kernel(uint64_t correlation_id) {
  Released released;
  auto found = launches_.find(correlation_id);
  if (found == launches_.end() || found->second.has_run)
    return released;
  take_waiting(found->second, released);
  erase(found);
  return released;
}

ScopedLaunches::Released ScopedLaunches::end_phase(uint32_t session, uint32_t phase) {
  Released released;
  for (auto &[correlation_id, launch] : launches_) {
    auto is_others = [&](const HeldScopes &held) {
      return held.session != session || held.phase != phase;
    };
    auto its = std::stable_partition(launch.waiting.begin(), launch.waiting.end(), is_others);
    for (auto held = its; held != launch.waiting.end(); ++held) {
      waiting_bytes_ -= bytes_of(held->scopes);
      released.push_back(std::move(*held));
    }
    launch.waiting.erase(its, launch.waiting.end());
  }
  return released;
}

} // namespace proton
