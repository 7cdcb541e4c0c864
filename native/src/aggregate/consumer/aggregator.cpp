#include "aggregate/consumer/aggregator.h"

#include <algorithm>
#include <utility>

#include "aggregate/kernels/scope_cycles.h"
#include "context/thread/current.h"
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
  instances += other.instances;
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

void Aggregator::failed(uint64_t correlation_id) noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    retract(correlation_id);
  } catch (...) { // out of memory: the launch stays open and its phase incomplete
  }
}

void Aggregator::retract(uint64_t correlation_id) {
  event_book.forget(correlation_id);
  if (graph_book.retract(correlation_id))
    return;
  std::optional<LaunchRecord> launch = launches.take(correlation_id);
  if (!launch)
    launches.take_forgotten();
  else if (Epoch *epoch = find_epoch(launch->at.epoch))
    epoch->counts.failed += launch->kind == LaunchKind::kKernel ? 1 : 0;
}

std::optional<Capture> Aggregator::withdraw(uint64_t correlation_id) {
  event_book.forget(correlation_id);
  std::optional<LaunchRecord> launch = launches.take(correlation_id);
  Epoch *epoch = launch ? find_epoch(launch->at.epoch) : nullptr;
  if (!launch)
    launches.take_forgotten();
  if (!epoch)
    return std::nullopt;
  --epoch->counts.launches;
  return launch->at;
}

void Aggregator::dropped(const DroppedRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex);
    Epoch *epoch = current_epoch();
    if (!epoch && record.is_late && !epochs.empty())
      epoch = &epochs.rbegin()->second;
    lose(record.reason ? record.reason : "unknown", record.count, epoch);
  } catch (...) { // out of memory: nothing is left to count with
  }
}

template <typename Record, typename Add>
void Aggregator::add_all(std::span<const Record> records, Add add) noexcept {
  std::vector<std::shared_ptr<EventSink>> filled;
  try {
    std::lock_guard lock(mutex);
    drain();
    for (const Record &record : records) {
      try {
        (this->*add)(record);
      } catch (...) {
        lose("device record not stored", 1, nullptr);
      }
    }
    filled = event_book.take_filled();
  } catch (...) { // out of memory: nothing is left to count with
  }
  for (const std::shared_ptr<EventSink> &sink : filled)
    sink->wait_for_room();
}

void Aggregator::complete(std::span<const KernelRecord> kernels) noexcept {
  add_all(kernels, &Aggregator::add_kernel);
}

void Aggregator::complete(std::span<const CopyRecord> copies) noexcept {
  add_all(copies, &Aggregator::add_copy);
}

void Aggregator::add_kernel(const KernelRecord &record) {
  if (kernel_times_.is_on() && !record.is_own) [[unlikely]]
    kernel_times_.add(record);
  if (record.graph_node != 0) {
    graph_book.add_kernel(record);
    return;
  }
  std::optional<LaunchRecord> launch = launches.take(record.correlation_id);
  if (!launch) {
    if (!record.may_lack_launch && !launches.take_forgotten())
      lose("kernel record without a launch", 1, nullptr);
    return;
  }
  Epoch *epoch = find_epoch(launch->at.epoch);
  if (!epoch)
    return; // its phase was cleared, or nobody listened
  if (!has_duration(record)) {
    ++epoch->counts.dropped;
    lose("kernel record with end before start", 1, epoch);
    return;
  }
  ++epoch->counts.records;
  DeviceWork work{EventKind::kKernel, record.correlation_id, record.start_ns,
                  record.end_ns,      record.stream,         false};
  for (const EpochMember &member : epoch->members) {
    NodeIndex leaf = member.tree->add_kernel(member.phase, *launch, record);
    if (member.tree->events())
      event_book.add_work(member, work, leaf, leaf);
  }
  event_book.kernel_ran(record.correlation_id, record.start_ns, record.end_ns);
  event_book.end(record.correlation_id);
}

void Aggregator::add_copy(const CopyRecord &record) {
  if (record.graph_node != 0) {
    graph_book.add_copy(record);
    return;
  }
  std::optional<LaunchRecord> launch = launches.take(record.correlation_id);
  Epoch *epoch = launch ? find_epoch(launch->at.epoch) : nullptr;
  if (!epoch) // made by a call that was not watched, such as the copies inside of another one
    return;
  if (launch->kind == LaunchKind::kCopies)
    launches.add(*launch); // more of it may come
  if (launch->kind == LaunchKind::kCopy || launch->kind == LaunchKind::kCopies)
    ++epoch->counts.launches; // it turned out to be one
  if (!has_duration(record)) {
    ++epoch->counts.dropped;
    lose("copy record with end before start", 1, epoch);
    return;
  }
  ++epoch->counts.records;
  DeviceWork work{EventKind::kCopy, record.correlation_id, record.start_ns,
                  record.end_ns,    record.stream,         false,
                  record.bytes};
  for (const EpochMember &member : epoch->members) {
    NodeIndex leaf = member.tree->add_copy(member.phase, *launch, record);
    if (member.tree->events())
      event_book.add_work(member, work, leaf, leaf);
  }
  if (launch->kind == LaunchKind::kCopies)
    event_book.show(record.correlation_id);
  else
    event_book.end(record.correlation_id);
}

void Aggregator::complete(const CycleRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    Epoch *epoch = find_epoch(record.at.epoch);
    if (!epoch || !record.totals)
      return; // its phase was cleared, or nobody listened
    count_losses(*record.totals,
                 [&](const char *reason, uint64_t count) { lose(reason, count, epoch); });
    for (size_t scope = 0; scope < record.scopes.size(); ++scope)
      epoch->counts.instances += record.scope_totals[scope].count;
    for (const EpochMember &member : epoch->members)
      member.tree->add_cycles(member.phase, record);
  } catch (...) { // out of memory, or a user's metric has the name of ours
    dropped({"cycles of scopes not stored", 1});
  }
}

void Aggregator::complete(const TimelineRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    Epoch *epoch = find_epoch(record.at.epoch);
    if (!epoch)
      return;
    for (const EpochMember &member : epoch->members) {
      if (member.tree->events())
        event_book.add_scopes(member, record);
      if (!member.tree->add_timeline(member.phase, record))
        losses[member.session][EventBook::kNoRoomForScopes] +=
            record.instances.size() + record.left_out;
    }
    event_book.end_scopes(record.correlation_id);
  } catch (...) { // out of memory
    dropped({"timeline of a launch not stored", 1});
  }
}

bool Aggregator::has_timeline_room(const Capture &at) noexcept {
  try {
    std::lock_guard lock(mutex);
    const Epoch *epoch = find_epoch(at.epoch);
    return epoch && std::any_of(epoch->members.begin(), epoch->members.end(), [](const auto &each) {
             return each.tree->has_timeline_room(each.phase);
           });
  } catch (...) { // out of memory: whoever gets the timeline will say so
    return true;
  }
}

PendingLaunches Aggregator::pending(uint64_t first_id, uint64_t last_id) noexcept {
  PendingLaunches pending;
  try {
    std::lock_guard lock(mutex);
    drain();
    launches.for_each([&](const LaunchRecord &launch) {
      if (launch.correlation_id < first_id || launch.correlation_id > last_id)
        return;
      pending.kernels += launch.kind == LaunchKind::kKernel ? 1 : 0;
      pending.newest_id = std::max(pending.newest_id, launch.correlation_id);
    });
    graph_book.count_pending(first_id, last_id, pending);
  } catch (...) { // out of memory: nobody knows
  }
  return pending;
}

void Aggregator::settled(const SettledRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex);
    drain();
    std::map<EpochId, uint64_t> lost;
    uint64_t known = record.known_lost;
    launches.remove_if([&](const LaunchRecord &launch) {
      if (launch.correlation_id < record.first_id || launch.correlation_id > record.last_id)
        return false;
      bool is_kernel = launch.kind == LaunchKind::kKernel;
      if (is_kernel && record.owes_kernels)
        ++lost[launch.at.epoch];
      return !is_kernel || record.owes_kernels;
    });
    for (auto [id, count] : lost) {
      Epoch *epoch = find_epoch(id);
      if (!epoch)
        continue;
      epoch->counts.dropped += count;
      uint64_t explained = std::min(known, count);
      known -= explained;
      if (count != explained)
        lose("launch without a kernel record", count - explained, epoch);
    }
    graph_book.settle(record, known);
    event_book.forget_if([&](uint64_t id) {
      return id >= record.first_id && id <= record.last_id && !launches.find(id) &&
             !graph_book.is_open(id);
    });
  } catch (...) { // out of memory: the launches stay open
  }
}

} // namespace proton
