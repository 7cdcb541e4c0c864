// A session with a timeline, straight on the aggregator, and what its sink was given.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "support/tick_clock.h"

namespace proton {

/// Keeps what it takes, with nodes by their paths.
class KeptEvents : public EventSink {
public:
  struct Phase {
    std::vector<std::string> paths{""}; ///< of nodes, by number
    std::vector<FrameKind> kinds{FrameKind::kRoot};
    std::vector<TimelineEvent> events;
    std::vector<EventValues> values; ///< of events, by the same position
    std::vector<EventThread> threads;
    std::vector<EventCounter> counters;
    std::vector<std::shared_ptr<const TimelineLaunch>> kernel_scopes;
    uint32_t batches = 0;
    bool is_over = false;
  };

  bool take(uint32_t number, EventBatch &&batch) noexcept override {
    Phase &phase = phases[number];
    ++phase.batches;
    largest = std::max(largest, batch.events.size());
    for (const EventNode &node : batch.nodes) {
      const std::string &above = phase.paths.at(node.parent);
      phase.paths.push_back(above + (above.empty() ? "" : "/") + std::string(node.name.text()));
      phase.kinds.push_back(node.kind);
    }
    phase.threads.insert(phase.threads.end(), batch.threads.begin(), batch.threads.end());
    if (is_full)
      return false;
    for (const TimelineEvent &event : batch.events) {
      phase.events.push_back(event);
      phase.values.push_back(event.values == 0 ? EventValues{} : batch.values.at(event.values - 1));
    }
    phase.counters.insert(phase.counters.end(), batch.counters.begin(), batch.counters.end());
    for (const auto &launch : batch.kernel_scopes)
      phase.kernel_scopes.push_back(launch);
    return true;
  }
  void end_phase(uint32_t number) noexcept override { phases[number].is_over = true; }
  void wait_for_room() noexcept override { ++waits; }

  std::map<uint32_t, Phase> phases;
  size_t largest = 0;
  bool is_full = false;
  std::atomic<uint32_t> waits{0};
};

/// Listens from the constructor to the destructor, but for pauses.
class TimelineSession {
public:
  explicit TimelineSession(bool takes_events = true, ContextSource source = ContextSource::kShadow)
      : tree(source, ++generations(), false, !takes_events) {
    if (takes_events)
      tree.set_event_sink(kept);
    listen();
  }
  ~TimelineSession() {
    Aggregator::Held held;
    publish_session_state({});
    held.drain();
    held.epochs().drop(tree);
    held.trim();
    held.events().trim();
  }
  TimelineSession(const TimelineSession &) = delete;
  TimelineSession &operator=(const TimelineSession &) = delete;

  EpochMember member() { return {&tree, phase}; }

  void listen() {
    Aggregator::Held held;
    open_epoch(held, true);
  }
  void pause() {
    Aggregator::Held held;
    open_epoch(held, false);
  }
  void advance_phase() {
    Aggregator::Held held;
    ++phase;
    open_epoch(held, true);
  }
  /// Hands over what there is and returns that of a phase.
  KeptEvents::Phase &events(uint32_t number = 0) {
    Aggregator::Held held;
    held.drain();
    held.events().push(member());
    return kept->phases[number];
  }
  /// Ceases to listen, with the scopes that are open, and ends the phase.
  KeptEvents::Phase &end() {
    Aggregator::Held held;
    open_epoch(held, false);
    held.drain();
    held.events().add_open_scopes(member());
    held.events().end_phase(member());
    return kept->phases[phase];
  }
  uint64_t lost(const char *reason = EventBook::kNoRoom) {
    Aggregator::Held held;
    auto found = tree.losses().find(reason);
    return found == tree.losses().end() ? 0 : found->second;
  }

  uint32_t phase = 0;
  std::shared_ptr<KeptEvents> kept = std::make_shared<KeptEvents>();
  SessionTree tree;

private:
  static uint32_t &generations() {
    static uint32_t newest = 0;
    return newest;
  }
  void open_epoch(Aggregator::Held &held, bool listens) {
    SessionState next;
    next.generation = generations();
    next.active = listens;
    next.wants_times = listens && tree.wants_times();
    next.wants_timeline = listens && tree.events();
    next.epoch = listens ? held.epochs().begin({member()}) : held.epochs().newest_id();
    publish_session_state(next);
  }
};

/// "kind path" of each event in order, with a "?" for one that is open, parted by "; ".
inline std::string described(const KeptEvents::Phase &phase) {
  static constexpr const char *kKinds[] = {"scope",  "op",   "interpreted", "launch",
                                           "kernel", "copy", "graph"};
  std::string text;
  for (const TimelineEvent &event : phase.events)
    text += (text.empty() ? "" : "; ") + std::string(kKinds[static_cast<size_t>(event.kind)]) +
            " " + phase.paths.at(event.node) + (event.is_open ? "?" : "");
  return text;
}

/// "name=value " of the event's values.
inline std::string values_of(const KeptEvents::Phase &phase, size_t event) {
  std::string text;
  for (const auto &[name, value] : phase.values.at(event).values)
    text += std::string(name.text()) + "=" + value + " ";
  return text;
}

/// A scope of the calling thread while a session listens.
class TimedScope {
public:
  explicit TimedScope(const char *name) : now_(session_state()) {
    if (now_.active)
      open_scope(hashed(name), FrameKind::kScope, now_);
  }
  ~TimedScope() {
    if (now_.active)
      close_top(session_state());
  }
  TimedScope(const TimedScope &) = delete;
  TimedScope &operator=(const TimedScope &) = delete;

private:
  SessionState now_;
};

} // namespace proton
