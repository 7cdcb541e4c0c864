// The sessions of the process: which are active, their phases, and the epochs that follow.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "context/thread/shadow_stack.h"
#include "session/phase_closer.h"
#include "session/trace_stream.h"
#include "writer/tree/profile_writer.h"

namespace proton {

/// A phase as it was at one moment, to be encoded without a lock.
struct PhaseCopy {
  uint32_t phase = 0;
  uint64_t revision = 0;
  CallPathTree tree;
  FileFacts facts;
  ScopeTimeline timeline;
};

/// What became of a phase that was over and complete.
struct ClosedPhase {
  std::optional<PhaseCopy> copy; ///< to be written; empty: that was not asked for
};

/// What the end of a timeline says beside what the session knows.
struct TimelineEnd {
  std::vector<TraceFormat> formats; ///< files of others are removed
  int64_t clock_drift_ns = 0;
  bool is_partial = false;
  bool hands_over = false; ///< see StreamEnd
  std::string signal;      ///< on which the process ends, for the provenance; empty: none
};

/// The phases of a session as they were at one moment.
struct SessionCopy {
  bool has_phases = false; ///< some phase ended: files are named by their phase
  std::set<uint32_t> live; ///< numbers of phases that were not freed, copied or not
  std::vector<PhaseCopy> phases;
};

/// Every function takes the aggregator's mutex, but for those that add metrics. Unknown sessions
/// throw Error(kSession).
class SessionRegistry {
public:
  static SessionRegistry &instance();

  /// Makes an inactive session; ids count from 0.
  int add(const std::string &name, ContextSource source, bool records_wall,
          bool keeps_timeline = false, bool upstream_shape = false);
  void activate(int id);
  void deactivate(int id);
  /// Drops the session and everything it recorded.
  void remove(int id);
  bool exists(int id);
  bool is_active(int id);
  size_t active_count();
  ContextSource source(int id);
  /// Frames of the calling thread's stack that this session sees.
  uint32_t context_depth(int id);
  void set_provenance(int id, std::string encoded);
  std::map<std::string, uint64_t> losses(int id);
  RecordCounts counts(int id);
  /// Adds metrics to the context of the calling thread in every active session.
  void add_metrics(const Capture &at, const std::vector<UserMetric> &metrics);
  /// Adds what was read to the timeline of every active session that keeps one.
  void add_counters(const std::vector<EventCounter> &counters);

  void drain();
  uint32_t advance_phase(int id);
  uint32_t current_phase(int id);
  std::vector<uint32_t> live_phases(int id);
  bool is_phase_complete(int id, uint32_t phase);
  void clear_phase(int id, uint32_t phase, bool up_to);

  /// Writes the session's timeline into files from now on. Once, before it is active. Throws
  /// Error(kUnavailable).
  void stream_timeline(int id, StreamPlan plan);
  /// Has phases that are over and complete written and freed, or only ended where the plan says no
  /// more. Once, before the session is active. Throws Error(kUnavailable).
  void close_phases(int id, ClosingPlan plan);
  /// As `deactivate`, and for ever: scopes that are open are shown until now.
  void end_recording(int id);
  /// Hands the events so far to the session's stream, if it has one. Does nothing while the mutex
  /// is taken, or without such a session.
  void try_hand_over(int id);
  /// Brings what was recorded so far onto the disk: events, and phases that are over and complete.
  ///   is_end: no more is to come; scopes that are open are shown until now.
  /// False: it was not done until the deadline.
  bool settle(int id, int64_t deadline_ns, bool is_end);
  /// Same; also false where the mutex is not free until the deadline, or there is no such session.
  bool try_settle(int id, int64_t deadline_ns, bool is_end);
  /// Ends the files of the session's timeline and gives them their names; none without a timeline.
  /// Throws Error(kOutput) when one could not be written, also where that was a phase's.
  std::vector<EndedFile> end_timeline(int id, TimelineEnd end, int64_t deadline_ns);
  StreamCounts stream_counts(int id);
  std::set<TraceFormat> streamed_formats(int id);
  /// Begins a new phase, unless nothing was recorded in this one or the session is not active.
  void advance_if_recorded(int id);
  /// Ends a phase that is over and complete, and frees it if `frees`. Empty: there is none.
  std::optional<ClosedPhase> close_next_phase(int id, bool copies, bool frees);

  std::string encode(int id, uint32_t phase, FileFormat format);
  /// Copies the live phases whose revision differs from `seen`. False, and nothing is copied, when
  /// the mutex is not free until `deadline_ns` or there is no such session.
  bool try_copy(int id, int64_t deadline_ns, const std::map<uint32_t, uint64_t> &seen,
                SessionCopy &out);
  /// Whether the hatchet formats sum the deepest levels of the phase into their ancestors.
  bool folds_in_hatchet(int id, uint32_t phase);

  /// In a forked child: no session goes on.
  void reset_after_fork() noexcept;

private:
  struct Session {
    int id = 0;
    std::string name;
    std::unique_ptr<SessionTree> tree;
    bool active = false;
    uint32_t phase = 0;
    std::map<uint32_t, EpochId> first_epochs; ///< live phases -> the epoch that opened them
    ThreadStack starting_thread;
    std::string provenance;
    RecordCounts retired;                ///< of epochs that were pruned
    std::shared_ptr<TraceStream> stream; ///< null without a timeline in files
    std::shared_ptr<PhaseCloser> closer; ///< null where phases stay until the end
    std::set<uint32_t> closed;           ///< live phases whose timeline was ended
  };

  Session &find(int id);
  const CallPathTree &tree(int id, uint32_t phase);
  /// False: the mutex was not free until the deadline (CLOCK_MONOTONIC).
  static bool lock_until(std::unique_lock<std::mutex> &lock, int64_t deadline_ns);
  bool settle_locked(Session &session, std::unique_lock<std::mutex> &lock, int64_t deadline_ns,
                     bool is_end);
  void stop(Session &session);
  static void show_open_scopes(Session &session);
  static void hand_over(Session &session);
  std::optional<uint32_t> find_finished(int id);
  void forget(int id);
  uint32_t begin_phase(int id);
  void drop_phase(int id, uint32_t phase);
  bool is_complete(int id, uint32_t phase);
  /// Whether many phases are complete and wait to be written.
  bool is_closing_behind(int id);
  PhaseCopy copy(Session &session, uint32_t phase);
  /// What the timeline of a phase says at its end, with the tree as it is now.
  TraceEnd trace_end(Session &session, uint32_t phase, const TimelineEnd &end = {});
  /// Names the active sessions anew; records from now on belong to this epoch.
  EpochId open_epoch();
  /// Frees epochs, launches and contexts that no live phase needs.
  void prune();

  std::map<int, Session> sessions_;
  int next_id_ = 0;
  uint32_t next_birth_ = 1;
  EpochId last_epoch_ = 0;
};

} // namespace proton
