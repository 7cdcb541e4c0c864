#include "aggregate/events/session_events.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "support/error.h"

namespace proton {

SessionEvents::Phase *SessionEvents::find(uint32_t number) {
  if (newest_ && newest_number_ == number)
    return newest_;
  if (number < ended_ && !phases_.contains(number))
    return nullptr;
  newest_ = &phases_[number];
  newest_number_ = number;
  return newest_;
}

void SessionEvents::bring(Phase &phase, const CallPathTree &tree, NodeIndex node) {
  for (; phase.announced < node; ++phase.announced) { // parents stand before their children
    const TreeNode &fresh = tree.nodes()[phase.announced + 1];
    phase.batch.nodes.push_back({fresh.parent, fresh.name, fresh.kind});
  }
}

bool SessionEvents::add(uint32_t number_of_phase, const CallPathTree &tree, TimelineEvent event,
                        const EventValues *values) {
  Phase *phase = find(number_of_phase);
  if (!phase) {
    ++lost_;
    return true;
  }
  bring(*phase, tree, event.node);
  if (values && !values->values.empty()) {
    phase->batch.values.push_back(*values);
    event.values = static_cast<uint32_t>(phase->batch.values.size());
  }
  return append(number_of_phase, *phase, event);
}

bool SessionEvents::append(uint32_t number_of_phase, Phase &phase, const TimelineEvent &event) {
  phase.batch.events.push_back(event);
  if (phase.batch.events.size() < kBatchEvents)
    return false;
  hand_over(number_of_phase, phase);
  return true;
}

bool SessionEvents::add(uint32_t number_of_phase, const CallPathTree &tree, TimelineLaunch scopes) {
  Phase *phase = find(number_of_phase);
  if (!phase) {
    lost_scopes_ += scopes.instances.size();
    return true;
  }
  bring(*phase, tree, scopes.kernel);
  phase->scope_bytes += sizeof(scopes) + scopes.programs.size() * sizeof(TimelineProgram) +
                        scopes.instances.size() * sizeof(TimelineScope);
  phase->batch.kernel_scopes.push_back(std::make_shared<const TimelineLaunch>(std::move(scopes)));
  if (phase->scope_bytes < kBatchScopeBytes)
    return false;
  hand_over(number_of_phase, *phase);
  return true;
}

void SessionEvents::add(uint32_t number_of_phase, const std::vector<EventCounter> &counters) {
  Phase *phase = find(number_of_phase);
  if (!phase) {
    lost_ += counters.size();
    return;
  }
  std::vector<EventCounter> &batched = phase->batch.counters;
  batched.insert(batched.end(), counters.begin(), counters.end());
}

void SessionEvents::hold(uint32_t number_of_phase, const CallPathTree &tree,
                         const TimelineEvent &event) {
  Phase *phase = find(number_of_phase);
  if (!phase) {
    ++lost_;
    return;
  }
  bring(*phase, tree, event.node);
  phase->held.insert_or_assign(event.launch, event);
}

bool SessionEvents::returned(uint64_t launch, int64_t returned_ns) {
  for (auto &[number_of_phase, phase] : phases_) {
    auto found = phase.held.find(launch);
    if (found == phase.held.end())
      continue;
    TimelineEvent event = found->second;
    event.end_ns = std::max(event.start_ns, returned_ns);
    phase.held.erase(found);
    return append(number_of_phase, phase, event);
  }
  return false;
}

bool SessionEvents::has_announced(uint32_t number_of_phase, uint32_t thread) {
  Phase *phase = find(number_of_phase);
  return !phase || phase->newest_thread == thread || phase->threads.contains(thread);
}

void SessionEvents::announce(uint32_t number_of_phase, EventThread thread) {
  Phase *phase = find(number_of_phase);
  if (!phase)
    return;
  phase->threads.insert(thread.number);
  phase->newest_thread = thread.number;
  phase->batch.threads.push_back(std::move(thread));
}

void SessionEvents::note_open(uint32_t number_of_phase, uint32_t thread, int64_t start_tick_ns) {
  if (Phase *phase = find(number_of_phase))
    phase->open.emplace(thread, start_tick_ns);
}

bool SessionEvents::was_open(uint32_t number_of_phase, uint32_t thread, int64_t start_tick_ns) {
  Phase *phase = find(number_of_phase);
  return phase && !phase->open.empty() && phase->open.contains({thread, start_tick_ns});
}

void SessionEvents::hand_over(uint32_t number_of_phase, Phase &phase) {
  if (phase.batch.is_empty())
    return;
  uint64_t events = phase.batch.events.size() + phase.batch.counters.size();
  uint64_t scopes = 0;
  for (const auto &launch : phase.batch.kernel_scopes)
    scopes += launch->instances.size();
  phase.scope_bytes = 0;
  if (sink_->take(number_of_phase, std::exchange(phase.batch, {})))
    return;
  lost_ += events;
  lost_scopes_ += scopes;
}

void SessionEvents::push() {
  for (auto &[number_of_phase, phase] : phases_)
    hand_over(number_of_phase, phase);
}

void SessionEvents::end_phase(uint32_t number_of_phase) {
  Phase *phase = find(number_of_phase);
  if (!phase)
    return;
  for (const auto &[launch, event] : phase->held)
    append(number_of_phase, *phase, event);
  hand_over(number_of_phase, *phase);
  sink_->end_phase(number_of_phase);
  newest_ = nullptr;
  phases_.erase(number_of_phase);
  ended_ = std::max(ended_, number_of_phase + 1);
}

void SessionEvents::forget_phase(uint32_t number_of_phase) {
  newest_ = nullptr;
  phases_.erase(number_of_phase);
}

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

namespace {

void add_metric(std::vector<UserMetric> &metrics, const UserMetric &metric) {
  auto known = std::find_if(metrics.begin(), metrics.end(),
                            [&](const UserMetric &each) { return each.metric == metric.metric; });
  if (known == metrics.end()) {
    metrics.push_back(metric);
    return;
  }
  try {
    add_value(known->value, metric.metric->aggregation, metric.value, metric.metric->text);
  } catch (const Error &) { // which the tree has counted
    known->value = metric.value;
  }
}

EventValues texts(const std::vector<UserMetric> &metrics) {
  EventValues values;
  for (const UserMetric &metric : metrics)
    values.values.emplace_back(metric.metric->shown, metric_text(metric.value));
  return values;
}

} // namespace

void InstanceValues::add(const OpenInstance &instance, int64_t at_ns, const UserMetric &metric) {
  std::list<Given> &given = given_[key(instance.thread, instance.at)];
  if (given.empty() || given.back().scope_id != instance.scope_id)
    given.push_back({instance.scope_id, instance.epoch, at_ns, {}});
  add_metric(given.back().metrics, metric);
}

std::optional<EventValues> InstanceValues::take(uint32_t thread, ContextId at, int64_t from_ns,
                                                int64_t to_ns) {
  auto found = given_.find(key(thread, at));
  if (found == given_.end())
    return std::nullopt;
  std::list<Given> &given = found->second;
  auto after = to_ns == 0 ? std::next(given.begin())
                          : std::find_if(given.begin(), given.end(),
                                         [&](const Given &each) { return each.at_ns > to_ns; });
  if (after == given.begin())
    return std::nullopt;
  std::optional<EventValues> values;
  if (const Given &newest = *std::prev(after); newest.at_ns >= from_ns)
    values = texts(newest.metrics);
  given.erase(given.begin(), after);
  if (given.empty())
    given_.erase(found);
  return values;
}

} // namespace proton
