// The events of one session on their way to its sink, in batches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "aggregate/events/event_sink.h"
#include "calltree/call_path_tree.h"
#include "calltree/scope_timeline.h"
#include "record/timeline_event.h"

namespace proton {

/// Not synchronised: the aggregator's lock guards it. Nodes of events are those of the phase's tree
/// when they come here. Functions that may hand over a batch say whether they did.
class SessionEvents {
public:
  static constexpr size_t kBatchEvents = 32768;
  static constexpr size_t kBatchScopeBytes = size_t{4} << 20; ///< of scopes inside kernels

  explicit SessionEvents(std::shared_ptr<EventSink> sink) : sink_(std::move(sink)) {}
  const std::shared_ptr<EventSink> &sink() const { return sink_; }

  bool add(uint32_t phase, const CallPathTree &tree, TimelineEvent event,
           const EventValues *values = nullptr);
  bool add(uint32_t phase, const CallPathTree &tree, TimelineLaunch scopes);
  /// Readings are handed over with the events of the phase.
  void add(uint32_t phase, const std::vector<EventCounter> &counters);
  /// Keeps the event of a call back until it returned.
  void hold(uint32_t phase, const CallPathTree &tree, const TimelineEvent &event);
  bool returned(uint64_t launch, int64_t returned_ns);
  bool has_announced(uint32_t phase, uint32_t thread);
  void announce(uint32_t phase, EventThread thread);

  /// Notes that a scope was shown while it was open: its end says nothing new.
  void note_open(uint32_t phase, uint32_t thread, int64_t start_tick_ns);
  bool was_open(uint32_t phase, uint32_t thread, int64_t start_tick_ns);

  /// Hands over what there is of every phase.
  void push();
  /// Hands over the last of the phase: calls that did not return end when they began.
  void end_phase(uint32_t phase);
  /// Forgets what was not handed over. The phase goes on with an empty tree, of which the sink
  /// knows nothing.
  void forget_phase(uint32_t phase);
  /// Events that found no room since the last call, and scopes inside kernels.
  uint64_t take_lost() { return std::exchange(lost_, 0); }
  uint64_t take_lost_scopes() { return std::exchange(lost_scopes_, 0); }

private:
  struct Phase {
    EventBatch batch;
    size_t scope_bytes = 0; ///< of scopes inside kernels in the batch
    uint32_t announced = 0; ///< nodes that were brought
    std::unordered_set<uint32_t> threads;
    uint32_t newest_thread = kNoThread;
    std::set<std::pair<uint32_t, int64_t>> open;      ///< thread and start of scopes shown open
    std::unordered_map<uint64_t, TimelineEvent> held; ///< by launch
  };

  /// Null when the phase has ended: what comes now is lost.
  Phase *find(uint32_t phase);
  /// Has the batch bring the nodes up to this one that the sink lacks.
  static void bring(Phase &phase, const CallPathTree &tree, NodeIndex node);
  bool append(uint32_t number, Phase &phase, const TimelineEvent &event);
  void hand_over(uint32_t number, Phase &phase);

  std::shared_ptr<EventSink> sink_;
  std::map<uint32_t, Phase> phases_;
  uint32_t newest_number_ = 0;
  Phase *newest_ = nullptr;
  uint32_t ended_ = 0; ///< phases below are over
  uint64_t lost_ = 0;
  uint64_t lost_scopes_ = 0;
};

} // namespace proton
