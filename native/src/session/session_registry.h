// The sessions of the process: which are active, their phases, and the epochs that follow.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aggregate/aggregator.h"
#include "context/shadow_stack.h"
#include "writer/profile_writer.h"

namespace proton {

/// A phase as it was at one moment, to be encoded without a lock.
struct PhaseCopy {
  uint32_t phase = 0;
  uint64_t revision = 0;
  CallPathTree tree;
  FileFacts facts;
  ScopeTimeline timeline;
};

/// The phases of a session as they were at one moment.
struct SessionCopy {
  bool has_phases = false; ///< some phase ended: files are named by their phase
  std::vector<PhaseCopy> phases;
};

/// Every function takes the aggregator's mutex. Unknown sessions throw Error(kSession).
class SessionRegistry {
public:
  static SessionRegistry &instance();

  /// Makes an inactive session; ids count from 0.
  int add(const std::string &name, ContextSource source, bool records_wall,
          bool keeps_timeline = false);
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
  /// Same unless the lock is taken; false: nothing was added.
  bool try_add_metrics(const Capture &at, const std::vector<UserMetric> &metrics);
  /// Adds metrics where a launch with this correlation id stood, which is no launch after all.
  void pay_metrics(uint64_t correlation_id, const std::vector<UserMetric> &metrics);

  void drain();
  uint32_t advance_phase(int id);
  uint32_t current_phase(int id);
  std::vector<uint32_t> live_phases(int id);
  bool is_phase_complete(int id, uint32_t phase);
  void clear_phase(int id, uint32_t phase, bool up_to);
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
    std::string name;
    std::unique_ptr<SessionTree> tree;
    bool active = false;
    uint32_t phase = 0;
    std::map<uint32_t, EpochId> first_epochs; ///< live phases -> the epoch that opened them
    ThreadStack starting_thread;
    std::string provenance;
    RecordCounts retired; ///< of epochs that were pruned
  };

  void add_at(const Capture &at, const std::vector<UserMetric> &metrics);
  Session &find(int id);
  const CallPathTree &tree(int id, uint32_t phase);
  FileFacts facts(int id, const CallPathTree &tree);
  void drop_phase(int id, uint32_t phase);
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
