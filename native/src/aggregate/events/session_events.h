// The events of one session on their way to its sink, in batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "calltree/call_path_tree.h"
#include "calltree/scope_timeline.h"
#include "correlation/graph_launches.h"
#include "record/record.h"
#include "record/timeline_event.h"

namespace proton {

// Where the events of sessions that keep a timeline go.

/// One per session. Set with SessionTree::set_event_sink while the session is made; a thread that
/// waits for room keeps it alive meanwhile.
class EventSink {
public:
  virtual ~EventSink() = default;
  /// Takes a batch over without waiting. False: there was no room, and the caller counts its events
  /// as lost; nodes and threads are taken in any case. [aggregator's lock held]
  virtual bool take(uint32_t phase, EventBatch &&batch) noexcept = 0;
  /// No event of the phase comes any more. A phase whose tree is dropped before that begins anew,
  /// with nodes and threads: its sink is to forget it. [aggregator's lock held]
  virtual void end_phase(uint32_t phase) noexcept = 0;
  /// Waits while the writer is behind, a second at most; counted. For threads that deliver
  /// records of devices, never for those of the program. [no lock held]
  virtual void wait_for_room() noexcept = 0;
};

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

// Launches of kernels with scopes inside: what is known of their insides and when their kernels ran
// come from two collectors, in either order.

/// The scopes of a launch for one session, which wait until the kernel's times are known. Not
/// synchronised: the aggregator's lock guards it.
struct HeldScopes {
  EpochId epoch = 0;
  uint32_t session = 0; ///< its generation
  uint32_t phase = 0;
  TimelineLaunch scopes;
};

class ScopedLaunches {
public:
  using Released = std::vector<HeldScopes>;
  static constexpr size_t kMaxBytes = size_t{64} << 20; ///< of scopes that wait

  /// A launch that was noted has scopes inside.
  void expect(uint64_t correlation_id, EpochId epoch) { launches_[correlation_id].epoch = epoch; }
  /// Its kernel ran. Returns the scopes that waited for it, in their place.
  Released kernel_ran(uint64_t correlation_id, int64_t start_ns, int64_t end_ns);
  /// Its scopes came. Returns the scopes that need not wait, or have waited for too long.
  Released add(uint64_t correlation_id, HeldScopes held);
  /// They came for every session.
  void end_scopes(uint64_t correlation_id);
  /// No kernel will come. Returns the scopes that waited.
  Released without_kernel(uint64_t correlation_id);
  /// The phase of a session ends. Returns its scopes that wait.
  Released end_phase(uint32_t session, uint32_t phase);
  template <typename Predicate> void forget_if(Predicate &&is_over) {
    for (auto each = launches_.begin(); each != launches_.end();)
      each = is_over(each->second.epoch) ? erase(each) : std::next(each);
  }

  bool is_empty() const { return launches_.empty(); }

private:
  struct Launch {
    EpochId epoch = 0;
    bool has_run = false;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    Released waiting; ///< one for each session
  };
  using Launches = std::map<uint64_t, Launch>; ///< the oldest is about the first

  Launches::iterator erase(Launches::iterator launch);
  void take_waiting(Launch &launch, Released &to);

  Launches launches_;
  size_t waiting_bytes_ = 0;
};

// Values that the program gave to instances of scopes and kernels, until their events are made.

/// A frame that is open on a thread.
struct OpenInstance {
  uint32_t thread = kNoThread;
  ContextId at = 0;
  uint64_t scope_id = 0; ///< of the frame: another one may have its path later
  EpochId epoch = 0;
};

/// Instances of one path follow one another on a thread, so the time of a value says which it is
/// of, though the record of an instance comes long after. Not synchronised: the aggregator's lock
/// guards it.
class InstanceValues {
public:
  /// Values of one name are summed, properties replaced, as in a tree. `at_ns` is of TickClock.
  void add(const OpenInstance &instance, int64_t at_ns, const UserMetric &metric);
  /// Values of the newest instance that got one until `to_ns`, unless that was before `from_ns`;
  /// those of earlier ones are forgotten. Times are of TickClock; 0 for `to_ns` takes that of
  /// the oldest instance.
  std::optional<EventValues> take(uint32_t thread, ContextId at, int64_t from_ns, int64_t to_ns);
  /// Forgets values of epochs for which `is_over` is true.
  template <typename Predicate> void forget_if(Predicate &&is_over) {
    for (auto item = given_.begin(); item != given_.end();) {
      std::erase_if(item->second, [&](const Given &each) { return is_over(each.epoch); });
      item = item->second.empty() ? given_.erase(item) : std::next(item);
    }
  }
  /// Paths of threads that have values.
  size_t size() const { return given_.size(); }

private:
  struct Given {
    uint64_t scope_id = 0;
    EpochId epoch = 0;
    int64_t at_ns = 0; ///< of its first value
    std::vector<UserMetric> metrics;
  };
  static uint64_t key(uint32_t thread, ContextId at) { return (uint64_t{thread} << 32) | at; }

  /// Each in order of time. What is taken stands in front, whatever is pending behind it.
  std::unordered_map<uint64_t, std::list<Given>> given_;
};

} // namespace proton
