// A session: what it listens to, its phases, and what it writes while it records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregate/consumer/aggregator.h"
#include "calltree/scope_timeline.h"
#include "context/thread/self_cost.h"
#include "context/thread/shadow_stack.h"
#include "session/phase_closer.h"
#include "session/trace_stream.h"
#include "writer/tree/proton_writer.h"

namespace proton {

/// A phase as it was at one moment, to be encoded without a lock.
struct PhaseCopy {
  uint32_t phase = 0;
  uint64_t revision = 0;
  CallPathTree tree;
  FileFacts facts;
};

/// A launch of an instrumented kernel, and where it was.
struct ScopeLaunch {
  std::vector<Name> path; ///< from ROOT to the kernel
  std::shared_ptr<const TimelineLaunch> launch;
};

/// What became of a phase that was over and complete.
struct ClosedPhase {
  std::optional<PhaseCopy> copy; ///< to be written; empty: that was not asked for
};

/// The phases of a session as they were at one moment.
struct SessionCopy {
  bool has_phases = false; ///< some phase ended: files are named by their phase
  bool follows_steps = false;
  std::set<uint32_t> live; ///< numbers of phases that were not freed, copied or not
  std::vector<PhaseCopy> phases;
};

/// What the active sessions of an epoch want.
struct EpochPlan {
  SessionState session_state;
  ThreadStack starting; ///< of the newest session whose thread still runs
  std::vector<EpochMember> members;
};

/// Made by `SessionRegistry::add`; recording from `activate` to `deactivate`, any number of times.
/// [any thread] Every function takes the aggregator's lock. Once the session is removed they throw
/// Error(kSession), unless they say what they do then.
class Session : public std::enable_shared_from_this<Session> {
public:
  /// So many phases may wait to be joined with their counters until the oldest goes without.
  static constexpr size_t kMostUnjoined = 32;
  ///   generation: no other session of the process has it.
  Session(int id, ContextSource source, uint32_t generation, bool records_wall, bool keeps_timeline,
          bool upstream_shape);

  int id() const { return id_; }
  ContextSource source() const { return source_; }
  /// Whether it was not removed.
  bool is_live();
  bool is_active();
  void activate();
  void deactivate();
  /// Drops everything that was recorded.
  void remove();

  /// Frames of the calling thread's stack that this session sees.
  uint32_t context_depth();
  void set_provenance(std::string encoded);
  std::map<std::string, uint64_t> losses();
  RecordCounts counts();
  /// What the profiler did since the session was made, for whatever session; needs no lock and
  /// works on a removed one.
  SelfCost self_cost() const noexcept { return SelfCost::now().since(cost_before_); }
  /// Takes the bursts of hardware counters that kernels of the phase overlapped, with what ran
  /// then. Where phases wait to be joined, this one does until the next call of this or
  /// `next_to_join`.
  std::vector<JoinedBurst> take_bursts(uint32_t phase);
  /// What each sample of a burst counts, by the vendor's names; empty without bursts.
  std::vector<std::string> counter_metrics();
  /// The time of all kernels of each of the nodes of a phase. Throws Error(kUsage) as the next.
  std::vector<double> times_of_nodes(const std::vector<NodeIndex> &nodes, uint32_t phase);
  /// Adds a value to a metric at each of the nodes of a phase, to be summed over the rows below.
  /// Throws Error(kUsage) where there is no such node.
  void set_metric_of_nodes(const std::string &name, const std::vector<NodeIndex> &nodes,
                           const std::vector<double> &values, uint32_t phase);
  /// Adds readings to the timeline of a phase, if there is one, before the timeline ends.
  void add_readings(const std::vector<EventCounter> &readings, uint32_t phase);
  /// Adds what was read to the timeline of the session, if it is active and keeps one; nothing once
  /// it is removed.
  void add_counters(const std::vector<EventCounter> &counters);

  // Phases.

  uint32_t advance_phase();
  uint32_t current_phase();
  std::vector<uint32_t> live_phases();
  bool is_phase_complete(uint32_t phase);
  void clear_phase(uint32_t phase, bool up_to);
  std::string encode(uint32_t phase, FileFormat format);
  /// When scopes inside kernels ran, where the session keeps that.
  std::vector<ScopeLaunch> scope_launches(uint32_t phase);
  size_t row_count(uint32_t phase);
  /// Copies the live phases whose revision differs from `seen`. False, and nothing is copied, when
  /// the lock is not free until `deadline_ns` or the session is removed.
  bool try_copy(int64_t deadline_ns, const std::map<uint32_t, uint64_t> &seen, SessionCopy &out);

  /// Every kernel and copy is kept from now on, SessionTree::kMostRuns at most until they are
  /// taken.
  void keep_runs();
  std::vector<DeviceRun> take_runs();

  /// Samples of the host are part of it. Once, before the session is active.
  void sample_host();

  // Steps of the program.

  /// What is recorded in the newest windows of steps gets a tree of its own. Once, before the
  /// session is active.
  void follow_steps();
  /// From now on the encoded first phase has that of the newest window that is over in it, with
  /// this provenance. False: no window is over.
  bool add_steady(std::string provenance);

  // Phases that are over, written while the session records.

  /// Has phases that are over and complete written and freed, or only ended where the plan says no
  /// more. Once, before the session is active. Throws Error(kUnavailable).
  void close_phases(ClosingPlan plan);
  /// Phases whose trees were written since the last call.
  std::vector<uint32_t> take_written();
  /// From the first call until `end_joins`, phases with bursts of hardware counters wait to be
  /// joined before they are closed. Returns one that is over and complete, as its bursts are;
  /// empty: there is none.
  std::optional<uint32_t> next_to_join();
  void end_joins();
  /// Counts a phase that goes without its counters as a loss.
  void lose_join();
  /// Begins a new phase, unless nothing was recorded in this one or the session is not active.
  void advance_if_recorded();
  /// Ends a phase that is over and complete, and frees it if `frees`. Empty: there is none, or the
  /// session is removed.
  std::optional<ClosedPhase> close_next_phase(bool copies, bool frees);

  // The timeline.

  /// Writes the session's timeline into files from now on. Once, before it is active. Throws
  /// Error(kUnavailable).
  void stream_timeline(StreamPlan plan);
  /// As `deactivate`, and for ever: scopes that are open are shown until now.
  void end_recording();
  /// Hands the events so far to the session's stream, if it has one. Does nothing while the lock is
  /// taken, or once the session is removed.
  void try_hand_over();
  /// Brings what was recorded so far onto the disk: events, and phases that are over and complete.
  ///   is_end: no more is to come; scopes that are open are shown until now.
  /// False: it was not done until the deadline.
  bool settle(int64_t deadline_ns, bool is_end);
  /// Ends the files of the session's timeline and gives them their names; none without a timeline.
  /// Files of other formats are removed; what goes to standard output is handed over. Throws
  /// Error(kOutput) when one could not be written, also where that was a phase's.
  std::vector<EndedFile> end_timeline(std::vector<TraceFormat> formats, int64_t clock_drift_ns,
                                      int64_t deadline_ns);
  StreamCounts stream_counts();

  // For the registry.

  bool is_active(const Aggregator::Held &) const { return is_active_; }
  bool follows_steps(const Aggregator::Held &) const { return follows_steps_; }
  /// A window of steps begins; the caller opens an epoch. See `WindowListener`.
  void begin_window(bool is_first, Aggregator::Held &held);
  /// Adds what this session wants, if it is active. Sessions do so from the oldest to the newest.
  void join(EpochPlan &plan, const Aggregator::Held &) const;
  /// In a forked child: the session does not go on.
  void reset_after_fork() noexcept;

private:
  /// Takes the lock, of a session that is not removed. Throws Error(kSession).
  Aggregator::Held held_live() const;

  // All of these want the lock held.

  EpochMember member() const { return {tree_.get(), phase_}; }
  /// The tree of a live phase. Throws Error(kSession), naming the live ones.
  const CallPathTree &tree(uint32_t phase);
  /// The same with all of these nodes. Throws Error(kUsage).
  CallPathTree &tree_with(const std::vector<NodeIndex> &nodes, uint32_t phase);
  PhaseCopy copy(uint32_t phase);
  PhaseCopy copy_steady();
  void drop_steady(Aggregator::Held &held);
  FileFacts facts(const CallPathTree &tree) const;
  /// The end of a phase's timeline, with the tree as it is now.
  TraceEnd trace_end(uint32_t phase, int64_t clock_drift_ns = 0);
  void stop(Aggregator::Held &held);
  uint32_t begin_phase(Aggregator::Held &held);
  void drop_phase(uint32_t phase, Aggregator::Held &held);
  /// Whether many phases are complete and wait to be written.
  bool is_closing_behind(Aggregator::Held &held) const;
  std::optional<uint32_t> find_finished(Aggregator::Held &held) const;
  bool is_over(uint32_t phase) const { return phase < phase_ && !closed_.contains(phase); }
  /// kNothing where phases do not wait.
  CounterLog::Rest rest_of(uint32_t phase) const;
  bool waits_for_join(uint32_t phase) const;
  void release_joined();
  /// Has the oldest phases go without counters where more than `kMostUnjoined` wait.
  void bound_joins(Aggregator::Held &held);
  /// Forgets bursts that only closed phases needed.
  void trim_counters();

  const int id_;
  const ContextSource source_;
  std::unique_ptr<SessionTree> tree_; ///< null once the session is removed
  bool is_active_ = false;
  uint32_t phase_ = 0;
  std::set<uint32_t> live_phases_;  ///< that were begun and not freed
  std::set<uint32_t> closed_;       ///< live phases that take nothing more
  bool joins_phases_ = false;       ///< phases wait to be joined
  std::optional<uint32_t> joining_; ///< whose bursts were taken, and whose metrics are to come
  bool follows_steps_ = false;
  std::unique_ptr<SessionTree> steady_; ///< its phases are windows; null before the first one
  uint32_t window_ = 0;                 ///< the phase of `steady_` that is open
  std::optional<std::string> steady_provenance_;
  ThreadStack starting_thread_;
  std::string provenance_;
  const SelfCost cost_before_ = SelfCost::now();
  RecordCounts retired_;                ///< of epochs that are gone
  std::shared_ptr<TraceStream> stream_; ///< null without a timeline in files
  std::shared_ptr<PhaseCloser> closer_; ///< null where phases stay until the end
};

} // namespace proton
