#include "aggregate/aggregator.h"

#include "context/current.h"
#include "context/thread_state.h"
#include "support/clock.h"
#include "support/fork_locks.h"

namespace proton {

void RecordCounts::add(const RecordCounts &other) {
  launches += other.launches;
  records += other.records;
  failed += other.failed;
  dropped += other.dropped;
  cleared += other.cleared;
  ranges += other.ranges;
  metrics += other.metrics;
  drain_ns += other.drain_ns;
}

Aggregator::Aggregator() { guard_across_fork(mutex, LockRank::kAggregator); }

Aggregator &Aggregator::instance() {
  static Aggregator *aggregator = new Aggregator; // outlives threads of the target
  return *aggregator;
}

Epoch *Aggregator::find_epoch(EpochId id) {
  auto found = epochs.find(id);
  return found == epochs.end() ? nullptr : &found->second;
}

Epoch *Aggregator::current_epoch() {
  Situation now = situation();
  return now.active ? find_epoch(now.epoch) : nullptr;
}

void Aggregator::lose(const char *reason, uint64_t count, const Epoch *epoch) {
  // Without an epoch nobody can say whose record it was, so every listening session counts it.
  if (!epoch)
    epoch = current_epoch();
  if (!epoch)
    return;
  for (const EpochMember &member : epoch->members)
    losses[member.session][reason] += count;
}

EpochId Aggregator::launched(uint64_t correlation_id) noexcept {
  LaunchRecord record;
  record.correlation_id = correlation_id;
  record.at = capture_current();
  if (record.at.epoch == 0)
    return 0;
  try {
    if (this_thread().launches.append(record))
      try_drain();
  } catch (...) { // no memory for this thread's state
    dropped({"no memory for host records", 1});
  }
  return record.at.epoch;
}

void Aggregator::failed(uint64_t correlation_id) noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    std::optional<Capture> at = launches.take(correlation_id);
    if (Epoch *epoch = at ? find_epoch(at->epoch) : nullptr)
      ++epoch->counts.failed;
    else if (!at)
      launches.take_forgotten();
  } catch (...) { // out of memory: the launch stays open and its phase incomplete
  }
}

void Aggregator::dropped(const DroppedRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex);
    lose(record.reason ? record.reason : "unknown", record.count, nullptr);
  } catch (...) { // out of memory: nothing is left to count with
  }
}

void Aggregator::complete(std::span<const KernelRecord> kernels) noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    for (const KernelRecord &kernel : kernels) {
      try {
        add_kernel(kernel);
      } catch (...) {
        lose("kernel record not stored", 1, nullptr);
      }
    }
  } catch (...) { // out of memory: nothing is left to count with
  }
}

void Aggregator::add_kernel(const KernelRecord &record) {
  std::optional<Capture> at = launches.take(record.correlation_id);
  if (!at) {
    if (!launches.take_forgotten())
      lose("kernel record without a launch", 1, nullptr);
    return;
  }
  Epoch *epoch = find_epoch(at->epoch);
  if (!epoch)
    return;                // its phase was cleared
  int64_t duration_ns = 0; // the times may be any bytes of a file or a broken collector
  bool overflows = __builtin_sub_overflow(record.end_ns, record.start_ns, &duration_ns);
  if (overflows || duration_ns < 0) {
    ++epoch->counts.dropped;
    lose("kernel record with end before start", 1, epoch);
    return;
  }
  ++epoch->counts.records;
  for (const EpochMember &member : epoch->members)
    member.tree->add_kernel(member.phase, *at, record);
}

void Aggregator::add_launch(const LaunchRecord &record) {
  Epoch *epoch = find_epoch(record.at.epoch);
  if (!epoch) {
    launches.forget();
    return;
  }
  ++epoch->counts.launches;
  std::optional<Capture> replaced = launches.add(record);
  if (Epoch *older = replaced ? find_epoch(replaced->epoch) : nullptr) {
    ++older->counts.dropped;
    lose("correlation id used again before its record came", 1, older);
  }
}

void Aggregator::add_range(const RangeRecord &record) {
  Epoch *epoch = find_epoch(record.at.epoch);
  if (!epoch)
    return;
  epoch->counts.ranges += record.kind == RangeKind::kSeen ? 0 : 1;
  for (const EpochMember &member : epoch->members)
    member.tree->add_range(member.phase, record);
}

void Aggregator::drain() {
  int64_t start_ns = monotonic_ns();
  for_each_thread([&](ThreadState &thread) {
    thread.launches.consume([&](const LaunchRecord &record) {
      try {
        add_launch(record);
      } catch (...) {
        lose("launch record not stored", 1, nullptr);
      }
    });
    thread.ranges.consume([&](const RangeRecord &record) {
      try {
        add_range(record);
      } catch (...) {
        lose("range record not stored", 1, nullptr);
      }
    });
    uint64_t lost = thread.launches.lost.exchange(0) + thread.ranges.lost.exchange(0);
    if (lost != 0)
      lose("no memory for host records", lost, nullptr);
  });
  if (Epoch *epoch = current_epoch())
    epoch->counts.drain_ns += monotonic_ns() - start_ns;
}

void Aggregator::try_drain() noexcept {
  try {
    Aggregator &aggregator = instance();
    std::unique_lock lock(aggregator.mutex, std::try_to_lock);
    if (lock.owns_lock())
      aggregator.drain();
  } catch (...) { // the records stay in their logs for the next drain
  }
}

} // namespace proton
