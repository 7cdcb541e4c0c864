// Consumes records off the hot path and adds them to the tree of every session they belong to.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregate/consumer/event_book.h"
#include "aggregate/consumer/graph_book.h"
#include "aggregate/kernels/kernel_times.h"
#include "aggregate/times/tick_anchors.h"
#include "aggregate/tree/session_tree.h"
#include "correlation/launch_table.h"
#include "record/record_sink.h"

namespace proton {

struct ThreadState;

/// What became of the launches of an epoch, and how many records came.
struct RecordCounts {
  uint64_t launches = 0;
  uint64_t records = 0;
  uint64_t failed = 0;
  uint64_t dropped = 0;   ///< launches whose record was lost
  uint64_t cleared = 0;   ///< launches whose phase was cleared before their record came
  uint64_t ranges = 0;    ///< that ended, without those that only say "seen"
  uint64_t metrics = 0;   ///< values that users added
  uint64_t instances = 0; ///< of scopes inside kernels
  int64_t drain_ns = 0;   ///< time spent here on behalf of the epoch's sessions

  uint64_t outstanding() const { return launches - records - failed - dropped - cleared; }
  bool is_complete() const { return outstanding() == 0; }
  void add(const RecordCounts &other);
};

/// A session in an epoch: where its records go.
struct EpochMember {
  int session = 0;
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

/// Values at the place of a launch.
struct Debt {
  uint64_t launch = 0;
  std::vector<UserMetric> metrics;
  bool is_old = false; ///< an earlier drain did not find the launch
};

/// The one sink of the process. `mutex` guards everything here and in the sessions; it is never
/// held while Python's lock is waited for, and it is taken before the locks of the thread list,
/// the context tree and the name table.
class Aggregator : public RecordSink {
public:
  static Aggregator &instance();

  EpochId launched(uint64_t correlation_id) noexcept override;
  EpochId launched(uint64_t correlation_id, LaunchKind kind, uint32_t code) noexcept override;
  EpochId launched_at(uint64_t correlation_id, int64_t called_ns) noexcept override;
  void returned(uint64_t correlation_id) noexcept override;
  void launched_own(uint64_t correlation_id, LaunchKind kind) noexcept override;
  uint64_t scoped() noexcept override;
  void retracted(uint64_t correlation_id) noexcept override;
  void failed(uint64_t correlation_id) noexcept override;
  void complete(std::span<const KernelRecord> kernels) noexcept override;
  void complete(std::span<const CopyRecord> copies) noexcept override;
  void complete(const CycleRecord &record) noexcept override;
  void complete(const TimelineRecord &record) noexcept override;
  void complete(const PcSampleRecord &record) noexcept override;
  void complete(std::span<const PcSampleRecord> records) noexcept override;
  void begin_samples() noexcept override;
  void end_samples() noexcept override;
  bool has_timeline_room(const Capture &at) noexcept override;
  PendingLaunches pending(uint64_t first_id, uint64_t last_id) noexcept override;
  void settled(const SettledRecord &record) noexcept override;
  void dropped(const DroppedRecord &record) noexcept override;
  GraphSink &graphs() noexcept override { return graph_book; }

  /// Consumes the logs of every thread. [mutex held]
  void drain();
  /// Consumes some of it, for about a millisecond. True: all that there was when the first of the
  /// slices began. [mutex held]
  bool drain_slice();
  /// Same when the mutex is free, and true; otherwise its holder will. [any thread, noexcept]
  static bool try_drain() noexcept;
  /// Notes values, which waits for nobody: what does not fit is counted when it is consumed. Throws
  /// Error(kMetric) for a list that is known not to.
  /// `are_shown`: the event of a scope of the calling thread shows them. [any thread]
  static void give(const Capture &at, std::span<const UserMetric> metrics, bool are_shown);
  /// Same at the place of a launch, which is then taken back.
  static void pay(uint64_t correlation_id, std::span<const UserMetric> metrics);

  /// Takes a launch back as if it had never been noted; where it stood, if it is still known.
  /// [mutex held, after `drain`]
  std::optional<Capture> withdraw(uint64_t correlation_id);

  std::mutex mutex;
  std::map<EpochId, Epoch> epochs;                       ///< live ones only
  std::map<int, std::map<std::string, uint64_t>> losses; ///< session -> reason -> count
  LaunchTable launches;
  GraphBook graph_book{*this};
  EventBook event_book{*this};

private:
  friend class GraphBook;
  friend class EventBook;
  Aggregator();
  Epoch *find_epoch(EpochId id);
  Epoch *current_epoch();                            ///< null while no session is active
  EpochId note(const LaunchRecord &record) noexcept; ///< in the calling thread's log
  void add_range(const RangeRecord &record);
  void add_value(const ValueRecord &record);
  /// False where nobody takes it.
  bool add_value(const Capture &at, const UserMetric &metric);
  void pay_debts();
  /// At most `most` records, counted down there. True: to the ends that it fixed.
  bool drain_thread(ThreadState &thread, uint64_t &most);
  bool drain_until(uint64_t most);
  /// `take_mark` tells how long the call took, where it returned: see ThreadState.
  template <typename TakeMark>
  void add_launch(LaunchRecord record, ThreadState &thread, TakeMark take_mark);
  /// Adds the launch of something else than a graph.
  void add_single(const LaunchRecord &record, Epoch *epoch);
  void retract(uint64_t correlation_id);
  void add_kernel(const KernelRecord &record);
  void add_copy(const CopyRecord &record);
  template <typename Record, typename Add>
  void add_all(std::span<const Record> records, Add add) noexcept;
  void lose(const char *reason, uint64_t count, const Epoch *epoch);
  /// Each session that listens or listened, once, with its newest phase.
  std::vector<EpochMember> sampled_members() const;

  KernelTimes kernel_times_; ///< only while somebody samples
  TickAnchors ticks_;
  std::vector<Debt> debts_;            ///< that were paid
  ThreadState *resume_ = nullptr;      ///< where the next slice begins; null: a new round
  std::vector<NodeIndex> range_nodes_; ///< of the range that is added, for each member
};

} // namespace proton
