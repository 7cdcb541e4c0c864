// Consumes records off the hot path and adds them to the tree of every session they belong to.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "aggregate/consumer/epoch_table.h"
#include "aggregate/consumer/event_book.h"
#include "aggregate/consumer/memory_book.h"
#include "aggregate/kernels/kernel_parts.h"
#include "aggregate/times/tick_anchors.h"
#include "correlation/launch_table.h"
#include "record/record_log.h"
#include "record/record_sink.h"

namespace proton {

struct ThreadState;

/// The one sink of the process. Its lock guards everything here and in the sessions; it is never
/// held while Python's lock is waited for, and it is taken before the locks of the thread list,
/// the context tree and the name table.
class Aggregator : public RecordSink, private GraphBook::Owner {
public:
  class Held;
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
  void complete(const MemoryRecord &record) noexcept override;
  void complete(std::span<const HostSample> samples) noexcept override;
  void begin_samples() noexcept override;
  void end_samples() noexcept override;
  void begin_burst(const char *device_kind, int32_t device_index, int64_t at_ns) noexcept override;
  bool complete(const std::shared_ptr<const CounterBurst> &burst) noexcept override;
  bool has_timeline_room(const Capture &at) noexcept override;
  PendingLaunches pending(uint64_t first_id, uint64_t last_id) noexcept override;
  void settled(const SettledRecord &record) noexcept override;
  void dropped(const DroppedRecord &record) noexcept override;
  GraphSink &graphs() noexcept override { return graph_book_; }

  /// Consumes the logs of every thread where the lock is free, and true; otherwise its holder will.
  /// [any thread]
  static bool try_drain() noexcept;

private:
  /// Values at the place of a launch.
  struct LaunchValues {
    uint64_t launch = 0;
    std::vector<UserMetric> metrics;
    bool is_old = false; ///< an earlier drain did not find the launch
  };

  Aggregator();

  std::unique_lock<std::mutex> lock() override { return std::unique_lock(mutex_); }

  // The launching side: entries in the calling thread's own log, without the lock.

  void append(const LaunchEntry &entry) noexcept;
  EpochId note(const LaunchRecord &record) noexcept;

  // The rest wants the lock held.

  void drain() override;
  /// At most `most` records. True: all that there was when the first of the slices began.
  bool drain_until(uint64_t most);
  /// At most `most` records, counted down there. True: to the ends that it fixed.
  bool drain_thread(ThreadState &thread, uint64_t &most);
  /// `take_mark` returns how long the call took, where it returned: see ThreadState.
  /// The same for changes of memory.
  bool drain_memory(uint64_t &most);
  template <typename TakeMark>
  void add_entry(const LaunchEntry &entry, ThreadState &thread, TakeMark take_mark);
  template <typename TakeMark>
  void add_launch(LaunchRecord record, const ThreadState &thread, TakeMark take_mark);
  /// Adds the launch of something else than a graph.
  void add_single(const LaunchRecord &record, Epoch *epoch);
  void add_entry(const HostEntry &entry);
  void add_range(const RangeRecord &record);
  void add_count(const CountRecord &record);
  void add_value(const ValueRecord &record);
  /// The values of a launch, to which the log adds now.
  LaunchValues &values_at(uint64_t launch);
  /// False where no session takes it.
  bool add_value(const Capture &at, const UserMetric &metric);
  void add_launch_values();
  /// Takes a launch back as if it had never been noted; where it stood, if it is still known.
  std::optional<Capture> withdraw(uint64_t correlation_id);
  void retract(uint64_t correlation_id);
  void add_kernel(const KernelRecord &record);
  void add_copy(const CopyRecord &record);
  template <typename Record, typename Add>
  void add_all(std::span<const Record> records, Add add) noexcept;
  /// Forgets epochs, launches and contexts that no session needs.
  void trim();

  std::mutex mutex_;
  EpochTable epochs_;
  LaunchTable launches_;
  TickAnchors ticks_;
  EventBook event_book_{epochs_, ticks_};
  GraphBook graph_book_{*this, epochs_, event_book_};
  MemoryBook memory_book_{epochs_, ticks_};
  RecordLog<MemoryRecord> memory_log_;
  std::mutex memory_mutex_;                 ///< of those that write the log
  bool is_memory_fixed_ = false;            ///< as in ThreadState
  KernelTimes kernel_times_;                ///< only while some collector samples
  std::vector<LaunchValues> launch_values_; ///< that were read and not added yet
  ThreadState *resume_ = nullptr;           ///< where the next slice begins; null: a new round
  std::vector<NodeIndex> range_nodes_;      ///< of the range that is added, for each member
};

/// The aggregator's lock, held for as long as this lives, and all that wants it held: a function
/// that takes one can be called in no other way. Do not wait for Python's lock meanwhile.
class Aggregator::Held {
public:
  /// Waits for the lock.
  Held() : owner_(&instance()), lock_(owner_->mutex_) {}
  /// Waits until the deadline (CLOCK_MONOTONIC) at most. Empty: the lock was not free.
  static std::optional<Held> until(int64_t deadline_ns);

  /// Consumes the logs of every thread.
  void drain() { owner_->drain(); }
  /// Consumes some of them, for about a millisecond. True: all that there was when the first of the
  /// slices began.
  bool drain_slice();
  /// Forgets epochs, launches and contexts that no session needs.
  void trim() { owner_->trim(); }
  /// The newest epoch begins.
  void begin_memory();
  /// Changes of memory come from a new watch from now on, or no more.
  void forget_memory();

  EpochTable &epochs() { return owner_->epochs_; }
  EventBook &events() { return owner_->event_book_; }
  GraphBook &graphs() { return owner_->graph_book_; }
  LaunchTable &launches() { return owner_->launches_; }

private:
  explicit Held(std::unique_lock<std::mutex> lock) : owner_(&instance()), lock_(std::move(lock)) {}

  Aggregator *owner_;
  std::unique_lock<std::mutex> lock_;
};

} // namespace proton
