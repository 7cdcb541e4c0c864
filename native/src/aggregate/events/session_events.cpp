#include "aggregate/events/session_events.h"

#include <algorithm>

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

} // namespace proton
