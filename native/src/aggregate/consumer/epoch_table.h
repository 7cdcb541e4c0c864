// Epochs: which sessions listened when, and what became of the launches made then.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "aggregate/tree/session_tree.h"
#include "record/record.h"

namespace proton {

/// What became of the launches of an epoch, and how many records came.
struct RecordCounts {
  uint64_t launches = 0;
  uint64_t records = 0;
  uint64_t failed = 0;
  uint64_t dropped = 0;   ///< launches whose record was lost
  uint64_t cleared = 0;   ///< launches whose phase was cleared before their record came
  uint64_t ranges = 0;    ///< that ended; records that only say "seen" do not count
  uint64_t metrics = 0;   ///< values that users added
  uint64_t instances = 0; ///< of scopes inside kernels
  uint64_t samples = 0;   ///< of the host
  int64_t drain_ns = 0;   ///< time spent here on behalf of the epoch's sessions

  uint64_t outstanding() const { return launches - records - failed - dropped - cleared; }
  bool is_complete() const { return outstanding() == 0; }
  void add(const RecordCounts &other);
};

/// A session in an epoch: where its records go.
struct EpochMember {
  SessionTree *tree = nullptr;
  uint32_t phase = 0;

  bool operator==(const EpochMember &other) const = default;
};

struct Epoch {
  std::vector<EpochMember> members;
  RecordCounts counts;

  /// Whether a session takes events.
  bool has_events() const {
    for (const EpochMember &member : members)
      if (member.tree->events())
        return true;
    return false;
  }
};

/// The epochs whose records some session still wants. Not synchronised: the aggregator's lock
/// guards it.
class EpochTable {
public:
  /// Null when no session wants its records any more.
  Epoch *find(EpochId id) {
    auto found = epochs_.find(id);
    return found == epochs_.end() ? nullptr : &found->second;
  }
  /// The epoch of now; null while no session is active.
  Epoch *current();
  /// The newest that is wanted; null without any.
  Epoch *last() { return epochs_.empty() ? nullptr : &epochs_.rbegin()->second; }
  /// The number that was given last.
  EpochId newest_id() const { return newest_id_; }

  /// Begins an epoch of these members, unless the newest has them: then that goes on. A session
  /// that pauses at every step would need memory for an epoch each time.
  EpochId begin(std::vector<EpochMember> members);

  /// Counts records that are lost to each session of the epoch; without one, to each that is
  /// active, because the record's epoch is not known.
  void lose(const char *reason, uint64_t count, const Epoch *epoch);
  /// Of all epochs of the session.
  RecordCounts counts_of(const SessionTree &session) const;
  /// Whether all launches of the phase are accounted for.
  bool is_complete(const SessionTree &session, uint32_t phase) const;
  /// Each session that has an epoch, once, with its newest phase.
  std::vector<EpochMember> sessions() const;

  /// The session wants no records of the phase any more. Returns the counts of its epochs, in which
  /// the launches that are still without a record count as cleared.
  RecordCounts drop(const SessionTree &session, uint32_t phase);
  /// The session wants no records at all.
  void drop(const SessionTree &session);
  /// Forgets epochs that no session wants. Returns the numbers of the others, ascending.
  std::vector<EpochId> trim();

private:
  std::map<EpochId, Epoch> epochs_;
  EpochId newest_id_ = 0;
};

} // namespace proton
