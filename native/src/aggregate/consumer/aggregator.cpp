#include "aggregate/consumer/aggregator.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "aggregate/consumer/drain_thread.h"
#include "aggregate/kernels/kernel_parts.h"
#include "calltree/context_tree.h"
#include "context/thread/current.h"
#include "context/thread/shadow_stack.h"
#include "context/thread/steps.h"
#include "context/thread/thread_state.h"
#include "correlation/graph_launches.h"
#include "record/collective_log.h"
#include "record/record.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

constexpr uint64_t kSliceRecords = 4096; ///< about a millisecond
constexpr int64_t kLongCallNs = int64_t{1} << 31;
constexpr int kMostTries = 50;
constexpr timespec kBetweenTries{0, 50'000};
constexpr timespec kBetweenLocks{0, 100'000};

/// Consumes what was noted, also where another thread has the logs for a while: a graph that leaves
/// values fills their ring meanwhile.
void keep_pace() noexcept {
  for (int tries = 0; tries < kMostTries && !Aggregator::try_drain(); ++tries)
    nanosleep(&kBetweenTries, nullptr);
}

/// A chunk of a log is full.
void chunk_filled() noexcept {
  // A thread that launches graphs which leave values reads them itself: a ring has fewer entries
  // than the background would wait for.
  if (DeviceValues::exist())
    keep_pace();
  else
    request_background_drain();
}

/// The value, taken from the record.
template <typename Record> MetricValue take_value(const Record &record) {
  switch (record.held) {
  case HeldValue::kInt:
    return record.integer;
  case HeldValue::kDouble:
    return record.number;
  default:
    return std::move(std::unique_ptr<LargeValue>(record.large)->value);
  }
}

} // namespace

Aggregator::Aggregator() {
  guard_across_fork(mutex_, LockRank::kAggregator);
  guard_across_fork(memory_mutex_, LockRank::kMemory);
}

Aggregator &Aggregator::instance() {
  static Aggregator *aggregator = new Aggregator; // the target's threads may need it to the end
  return *aggregator;
}

std::optional<Aggregator::Held> Aggregator::Held::until(int64_t deadline_ns) {
  std::unique_lock lock(instance().mutex_, std::defer_lock);
  while (!lock.try_lock()) {
    if (monotonic_ns() >= deadline_ns)
      return std::nullopt;
    nanosleep(&kBetweenLocks, nullptr);
  }
  return Held(std::move(lock));
}

bool Aggregator::Held::drain_slice() { return owner_->drain_until(kSliceRecords); }

void Aggregator::Held::begin_memory() {
  uint64_t most = ~uint64_t{0};
  owner_->ticks_.observe();
  owner_->drain_memory(most);
  owner_->memory_book_.begin_epoch(owner_->epochs_.newest_id());
}

void Aggregator::Held::forget_memory() {
  uint64_t most = ~uint64_t{0};
  owner_->drain_memory(most);
  owner_->memory_book_.forget();
}

void Aggregator::trim() {
  std::vector<EpochId> live = epochs_.trim();
  launches_.forget_except(live);
  ContextTree::instance().collect(live, [&](std::vector<ContextId> &roots) {
    for_each_thread([&](ThreadState &thread) { thread.stack.append_ids(roots); });
    append_expired(roots);
    memory_book_.append_ids(roots);
    graph_book_.append_ids(roots);
  });
}

// The launching side.

void Aggregator::append(const LaunchEntry &entry) noexcept {
  try {
    if (this_thread().launches.append(entry))
      chunk_filled();
  } catch (...) { // no memory for this thread's state
    dropped({"no memory for host records", 1});
  }
}

EpochId Aggregator::note(const LaunchRecord &record) noexcept {
  try {
    ThreadState &thread = this_thread();
    if (record.kind == LaunchKind::kKernel && record.at.epoch != 0)
      thread.newest_kernel = record.correlation_id;
    bool is_filled = thread.launches.emplace(record);
    if (record.awaits_return)
      thread.call = {record.correlation_id, record.called_ns, thread.launches.newest()};
    if (is_filled)
      chunk_filled();
  } catch (...) { // as above
    dropped({"no memory for host records", 1});
  }
  return record.at.epoch;
}

EpochId Aggregator::launched(uint64_t correlation_id) noexcept {
  return launched_at(correlation_id, 0);
}

EpochId Aggregator::launched_at(uint64_t correlation_id, int64_t called_ns) noexcept {
  LaunchRecord record;
  record.correlation_id = correlation_id;
  record.called_ns = called_ns;
  record.at = capture_current();
  return record.at.epoch == 0 ? 0 : note(record);
}

EpochId Aggregator::launched(uint64_t correlation_id, LaunchKind kind, uint32_t code) noexcept {
  if (kind == LaunchKind::kGraph && session_state().wants_steps)
    mark_step(StepMark::kGraph, "");
  LaunchRecord record;
  record.correlation_id = correlation_id;
  record.at = capture_current();
  record.code = code & 0xffffff;
  record.kind = kind;
  record.awaits_return = session_state().wants_timeline;
  record.has_tick_time = true;
  record.called_ns = TickClock::now_ns();
  return note(record);
}

void Aggregator::returned(uint64_t correlation_id) noexcept {
  CallReturn entry;
  entry.correlation_id = correlation_id;
  entry.returned_tick_ns = TickClock::now_ns();
  try {
    ThreadState &thread = this_thread();
    int64_t took_ns = entry.returned_tick_ns - thread.call.called_ns;
    bool is_its = thread.call.correlation_id == correlation_id && took_ns < kLongCallNs;
    if (is_its && thread.launches.mark(thread.call.position,
                                       static_cast<uint32_t>(std::max<int64_t>(took_ns, 1))))
      return;
  } catch (...) { // no memory for this thread's state: its launch was not noted
  }
  append(entry); // the launch was read before it returned, or others came between
}

void Aggregator::launched_own(uint64_t correlation_id, LaunchKind kind) noexcept {
  LaunchRecord record; // of no epoch, as where no session listens
  record.correlation_id = correlation_id;
  record.kind = kind;
  note(record);
}

uint64_t Aggregator::scoped() noexcept {
  KernelScopesNote entry;
  try {
    entry.correlation_id = std::exchange(this_thread().newest_kernel, 0);
  } catch (...) { // no memory for this thread's state, so no launch of it was noted
  }
  if (entry.correlation_id != 0)
    append(entry);
  return entry.correlation_id;
}

void Aggregator::retracted(uint64_t correlation_id) noexcept {
  LaunchRetraction entry;
  entry.correlation_id = correlation_id;
  append(entry);
}

// The consuming side: what host threads noted.

template <typename TakeMark>
void Aggregator::add_launch(LaunchRecord record, const ThreadState &thread, TakeMark take_mark) {
  int64_t tick_ns = record.has_tick_time ? record.called_ns : 0;
  int64_t returned_ns = 0;
  if (uint32_t took_ns = record.awaits_return ? take_mark() : 0) {
    returned_ns = ticks_.monotonic(tick_ns + took_ns);
    record.awaits_return = false;
  }
  if (record.has_tick_time)
    record.called_ns = ticks_.monotonic(record.called_ns);
  record.has_tick_time = false;
  Epoch *epoch = epochs_.find(record.at.epoch);
  if (record.kind == LaunchKind::kGraph)
    graph_book_.add_launch(record);
  else
    add_single(record, epoch);
  if (epoch && epoch->has_events())
    event_book_.add_launch(record, *epoch, {thread.launching, tick_ns, returned_ns});
}

template <typename TakeMark>
void Aggregator::add_entry(const LaunchEntry &entry, ThreadState &thread, TakeMark take_mark) {
  switch (entry.kind()) {
  case LaunchEntryKind::kLaunch:
    add_launch(entry.launch, thread, take_mark);
    break;
  case LaunchEntryKind::kReturn:
    event_book_.returned(entry.returned.correlation_id,
                         ticks_.monotonic(entry.returned.returned_tick_ns));
    break;
  case LaunchEntryKind::kRetract:
    retract(entry.retraction.correlation_id);
    break;
  case LaunchEntryKind::kScopes:
    event_book_.expect_scopes(entry.scopes.correlation_id);
    break;
  case LaunchEntryKind::kThread:
    thread.launching = entry.thread.number;
    break;
  }
}

void Aggregator::add_single(const LaunchRecord &record, Epoch *epoch) {
  if (!epoch && record.at.epoch != 0) {
    if (record.kind == LaunchKind::kKernel)
      launches_.forget();
    return;
  }
  bool has_record = record.kind == LaunchKind::kKernel;
  if (epoch)
    epoch->counts.launches += has_record ? 1 : 0;
  std::optional<LaunchRecord> replaced = launches_.add(record);
  bool was_missing = replaced && replaced->kind == LaunchKind::kKernel;
  if (Epoch *older = was_missing ? epochs_.find(replaced->at.epoch) : nullptr) {
    ++older->counts.dropped;
    epochs_.lose("correlation id used again before its record came", 1, older);
  }
}

void Aggregator::add_range(const RangeRecord &record) {
  Epoch *epoch = epochs_.find(record.at.epoch);
  if (!epoch)
    return;
  epoch->counts.ranges += record.kind == RangeKind::kSeen ? 0 : 1;
  range_nodes_.clear();
  for (const EpochMember &member : epoch->members)
    range_nodes_.push_back(member.tree->add_range(member.phase, record));
  if (epoch->has_events())
    event_book_.add_range(record, *epoch, range_nodes_);
}

void Aggregator::add_count(const CountRecord &record) {
  if (Epoch *epoch = epochs_.find(record.at.epoch))
    for (const EpochMember &member : epoch->members)
      member.tree->add_count(member.phase, record);
}

void Aggregator::add_value(const ValueRecord &record) {
  UserMetric metric(MetricName::numbered(record.metric), take_value(record));
  if (add_value(record.at, metric) && record.scope_id != 0)
    event_book_.add_value(record, metric);
}

Aggregator::LaunchValues &Aggregator::values_at(uint64_t launch) {
  if (launch_values_.empty() || launch_values_.back().launch != launch)
    launch_values_.push_back({launch, {}});
  return launch_values_.back();
}

void Aggregator::add_entry(const HostEntry &entry) {
  switch (entry.kind()) {
  case HostEntryKind::kRange:
    add_range(entry.range);
    break;
  case HostEntryKind::kCount:
    add_count(entry.count);
    break;
  case HostEntryKind::kValue:
    add_value(entry.value);
    break;
  case HostEntryKind::kLaunchValue:
    values_at(entry.launch_value.launch)
        .metrics.emplace_back(MetricName::numbered(entry.launch_value.metric),
                              take_value(entry.launch_value));
    break;
  case HostEntryKind::kNoValue:
    values_at(entry.no_value.launch);
    break;
  }
}

bool Aggregator::add_value(const Capture &at, const UserMetric &metric) {
  Epoch *epoch = epochs_.find(at.epoch);
  if (!epoch)
    return false; // no session listens any more
  try {
    for (const EpochMember &member : epoch->members)
      member.tree->add_metric(member.phase, at, metric);
    ++epoch->counts.metrics;
    return true;
  } catch (const Error &) {
    epochs_.lose("metric that does not fit earlier ones of its call path", 1, epoch);
    return false;
  }
}

void Aggregator::add_launch_values() {
  std::vector<LaunchValues> unknown; // launched meanwhile: the next drain knows
  for (LaunchValues &values : std::exchange(launch_values_, {})) {
    if (!launches_.find(values.launch) && !std::exchange(values.is_old, true))
      unknown.push_back(std::move(values));
    else if (std::optional<Capture> at = withdraw(values.launch))
      for (const UserMetric &metric : values.metrics)
        add_value(*at, metric);
  }
  launch_values_ = std::move(unknown);
}

bool Aggregator::drain_thread(ThreadState &thread, uint64_t &most) {
  if (!std::exchange(thread.is_fixed, true)) { // values are given before the launches they are of
    thread.launches.fix_end();
    thread.host.fix_end();
  }
  bool is_whole = thread.host.consume(
      [&](const HostEntry &entry) {
        try {
          add_entry(entry);
        } catch (...) {
          epochs_.lose("host record not stored", 1, nullptr);
        }
      },
      most);
  is_whole = is_whole && thread.launches.consume(
                             [&](const LaunchEntry &entry, auto take_mark) {
                               try {
                                 add_entry(entry, thread, take_mark);
                               } catch (...) {
                                 epochs_.lose("launch record not stored", 1, nullptr);
                               }
                             },
                             most);
  thread.is_fixed = !is_whole;
  uint64_t lost = thread.launches.lost.exchange(0) + thread.host.lost.exchange(0);
  if (lost != 0)
    epochs_.lose("no memory for host records", lost, nullptr);
  return is_whole;
}

bool Aggregator::drain_memory(uint64_t &most) {
  if (!std::exchange(is_memory_fixed_, true))
    memory_log_.fix_end();
  const bool is_whole = memory_log_.consume(
      [&](const MemoryRecord &record) {
        try {
          memory_book_.add(record);
        } catch (...) {
          epochs_.lose("change of device memory not stored", 1, nullptr);
        }
      },
      most);
  is_memory_fixed_ = !is_whole;
  if (uint64_t lost = memory_log_.lost.exchange(0))
    epochs_.lose("no memory for host records", lost, nullptr);
  return is_whole;
}

bool Aggregator::drain_until(uint64_t most) {
  int64_t start_ns = monotonic_ns();
  ticks_.observe();
  // Where the last slice ended: a thread that is faster than the slices does not hide the others.
  ThreadState *thread = resume_ ? resume_ : first_thread();
  while (thread && drain_thread(*thread, most))
    thread = thread->next.load(std::memory_order_acquire);
  resume_ = thread;
  if (!thread)
    add_launch_values();
  const bool is_whole = !thread && drain_memory(most);
  if (Epoch *epoch = epochs_.current())
    epoch->counts.drain_ns += monotonic_ns() - start_ns;
  return is_whole;
}

void Aggregator::drain() {
  if (resume_)
    drain_until(~uint64_t{0}); // to the ends that were fixed earlier
  drain_until(~uint64_t{0});
}

bool Aggregator::try_drain() noexcept {
  try {
    Aggregator &aggregator = instance();
    std::unique_lock lock(aggregator.mutex_, std::try_to_lock);
    if (!lock.owns_lock())
      return false;
    aggregator.drain();
  } catch (...) { // the records stay in their logs for the next drain
  }
  return true;
}

// What collectors deliver.

void Aggregator::failed(uint64_t correlation_id) noexcept {
  try {
    std::lock_guard lock(mutex_);
    drain();
    retract(correlation_id);
  } catch (...) { // out of memory: the launch stays open and its phase incomplete
  }
}

void Aggregator::retract(uint64_t correlation_id) {
  event_book_.forget(correlation_id);
  if (graph_book_.retract(correlation_id))
    return;
  std::optional<LaunchRecord> launch = launches_.take(correlation_id);
  if (!launch)
    launches_.take_forgotten();
  else if (Epoch *epoch = epochs_.find(launch->at.epoch))
    epoch->counts.failed += launch->kind == LaunchKind::kKernel ? 1 : 0;
}

std::optional<Capture> Aggregator::withdraw(uint64_t correlation_id) {
  event_book_.forget(correlation_id);
  std::optional<LaunchRecord> launch = launches_.take(correlation_id);
  Epoch *epoch = launch ? epochs_.find(launch->at.epoch) : nullptr;
  if (!launch)
    launches_.take_forgotten();
  if (!epoch)
    return std::nullopt;
  --epoch->counts.launches;
  return launch->at;
}

void Aggregator::dropped(const DroppedRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex_);
    Epoch *epoch = epochs_.current();
    if (!epoch && record.is_late)
      epoch = epochs_.last();
    epochs_.lose(record.reason ? record.reason : "unknown", record.count, epoch);
  } catch (...) { // out of memory: nothing is left to count with
  }
}

template <typename Record, typename Add>
void Aggregator::add_all(std::span<const Record> records, Add add) noexcept {
  std::vector<std::shared_ptr<EventSink>> filled;
  try {
    std::lock_guard lock(mutex_);
    drain();
    for (const Record &record : records) {
      try {
        (this->*add)(record);
      } catch (...) {
        epochs_.lose("device record not stored", 1, nullptr);
      }
    }
    filled = event_book_.take_filled();
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
    graph_book_.add_kernel(record);
    return;
  }
  std::optional<LaunchRecord> launch = launches_.take(record.correlation_id);
  if (!launch) {
    if (!record.may_lack_launch && !launches_.take_forgotten())
      epochs_.lose("kernel record without a launch", 1, nullptr);
    return;
  }
  Epoch *epoch = epochs_.find(launch->at.epoch);
  if (!epoch)
    return; // its phase was cleared, or no session listened
  if (!has_duration(record)) {
    ++epoch->counts.dropped;
    epochs_.lose("kernel record with end before start", 1, epoch);
    return;
  }
  ++epoch->counts.records;
  if (is_collective_kernel(record.name)) [[unlikely]]
    CollectiveLog::instance().ran(record.correlation_id, record.start_ns, record.end_ns);
  DeviceWork work{EventKind::kKernel, record.correlation_id, record.start_ns,
                  record.end_ns,      record.stream,         false};
  for (const EpochMember &member : epoch->members) {
    NodeIndex leaf = member.tree->add_kernel(member.phase, *launch, record);
    if (member.tree->events())
      event_book_.add_work(member, work, leaf, leaf);
  }
  event_book_.kernel_ran(record.correlation_id, record.start_ns, record.end_ns);
  event_book_.end(record.correlation_id);
}

void Aggregator::add_copy(const CopyRecord &record) {
  if (record.graph_node != 0) {
    graph_book_.add_copy(record);
    return;
  }
  std::optional<LaunchRecord> launch = launches_.take(record.correlation_id);
  Epoch *epoch = launch ? epochs_.find(launch->at.epoch) : nullptr;
  if (!epoch) // made by a call that was not watched, such as the copies inside of another one
    return;
  if (launch->kind == LaunchKind::kCopies)
    launches_.add(*launch); // more of it may come
  if (launch->kind == LaunchKind::kCopy || launch->kind == LaunchKind::kCopies)
    ++epoch->counts.launches; // it turned out to be one
  if (!has_duration(record)) {
    ++epoch->counts.dropped;
    epochs_.lose("copy record with end before start", 1, epoch);
    return;
  }
  ++epoch->counts.records;
  DeviceWork work{EventKind::kCopy, record.correlation_id, record.start_ns,
                  record.end_ns,    record.stream,         false,
                  record.bytes};
  for (const EpochMember &member : epoch->members) {
    NodeIndex leaf = member.tree->add_copy(member.phase, *launch, record);
    if (member.tree->events())
      event_book_.add_work(member, work, leaf, leaf);
  }
  if (launch->kind == LaunchKind::kCopies)
    event_book_.show(record.correlation_id);
  else
    event_book_.end(record.correlation_id);
}

void Aggregator::complete(const CycleRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex_);
    drain();
    Epoch *epoch = epochs_.find(record.at.epoch);
    if (!epoch || !record.totals)
      return; // its phase was cleared, or no session listened
    count_losses(*record.totals,
                 [&](const char *reason, uint64_t count) { epochs_.lose(reason, count, epoch); });
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
    std::lock_guard lock(mutex_);
    drain();
    Epoch *epoch = epochs_.find(record.at.epoch);
    if (!epoch)
      return;
    for (const EpochMember &member : epoch->members) {
      if (member.tree->events())
        event_book_.add_scopes(member, record);
      if (!member.tree->add_timeline(member.phase, record))
        member.tree->lose(EventBook::kNoRoomForScopes, record.instances.size() + record.left_out);
    }
    event_book_.end_scopes(record.correlation_id);
  } catch (...) { // out of memory
    dropped({"timeline of a launch not stored", 1});
  }
}

bool Aggregator::has_timeline_room(const Capture &at) noexcept {
  try {
    std::lock_guard lock(mutex_);
    const Epoch *epoch = epochs_.find(at.epoch);
    return epoch && std::any_of(epoch->members.begin(), epoch->members.end(), [](const auto &each) {
             return each.tree->has_timeline_room(each.phase);
           });
  } catch (...) { // out of memory: the sink of the timeline will say so
    return true;
  }
}

PendingLaunches Aggregator::pending(uint64_t first_id, uint64_t last_id) noexcept {
  PendingLaunches pending;
  try {
    std::lock_guard lock(mutex_);
    drain();
    launches_.for_each([&](const LaunchRecord &launch) {
      if (launch.correlation_id < first_id || launch.correlation_id > last_id)
        return;
      pending.kernels += launch.kind == LaunchKind::kKernel ? 1 : 0;
      pending.newest_id = std::max(pending.newest_id, launch.correlation_id);
    });
    graph_book_.count_pending(first_id, last_id, pending);
  } catch (...) { // out of memory: it is not known
  }
  return pending;
}

void Aggregator::settled(const SettledRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex_);
    drain();
    std::map<EpochId, uint64_t> lost;
    uint64_t known = record.known_lost;
    launches_.remove_if([&](const LaunchRecord &launch) {
      if (launch.correlation_id < record.first_id || launch.correlation_id > record.last_id)
        return false;
      bool is_kernel = launch.kind == LaunchKind::kKernel;
      if (is_kernel && record.gives_kernels_up)
        ++lost[launch.at.epoch];
      return !is_kernel || record.gives_kernels_up;
    });
    for (auto [id, count] : lost) {
      Epoch *epoch = epochs_.find(id);
      if (!epoch)
        continue;
      epoch->counts.dropped += count;
      uint64_t explained = std::min(known, count);
      known -= explained;
      if (count != explained)
        epochs_.lose("launch without a kernel record", count - explained, epoch);
    }
    graph_book_.settle(record, known);
    event_book_.forget_if([&](uint64_t id) {
      return id >= record.first_id && id <= record.last_id && !launches_.find(id) &&
             !graph_book_.is_open(id);
    });
  } catch (...) { // out of memory: the launches stay open
  }
}

void Aggregator::complete(std::span<const HostSample> samples) noexcept {
  try {
    std::lock_guard lock(mutex_);
    for (const HostSample &sample : samples) {
      Epoch *epoch = epochs_.find(sample.at.epoch);
      if (!epoch)
        continue; // no session listens any more
      ++epoch->counts.samples;
      for (const EpochMember &member : epoch->members)
        if (member.tree->samples_host())
          member.tree->add_sample(member.phase, sample);
    }
  } catch (...) { // out of memory, or a user's metric has the name of ours
    dropped({"samples of the host not stored", samples.size()});
  }
}

void Aggregator::complete(const MemoryRecord &record) noexcept {
  bool is_filled = false;
  {
    std::lock_guard lock(memory_mutex_);
    MemoryRecord noted = record;
    noted.step = step_number();
    is_filled = memory_log_.append(noted);
  }
  if (is_filled)
    request_background_drain();
}

// Hardware counters.

void Aggregator::begin_burst(const char *device_kind, int32_t device_index,
                             int64_t at_ns) noexcept {
  try {
    std::lock_guard lock(mutex_);
    if (Epoch *epoch = epochs_.current())
      for (const EpochMember &member : epoch->members)
        member.tree->begin_burst(device_kind, device_index, at_ns);
  } catch (...) { // out of memory: a session goes without this burst
  }
}

bool Aggregator::complete(const std::shared_ptr<const CounterBurst> &burst) noexcept {
  bool is_thinned = false;
  try {
    std::lock_guard lock(mutex_);
    for (const EpochMember &member : epochs_.sessions())
      is_thinned |= member.tree->end_burst(burst, member.phase);
  } catch (...) { // out of memory
    dropped({"burst of counters not stored", 1, true});
  }
  return is_thinned;
}

// Samples of program counters.

void Aggregator::complete(const PcSampleRecord &record) noexcept {
  try {
    std::lock_guard lock(mutex_);
    drain();
    if (Epoch *epoch = epochs_.find(record.at.epoch))
      for (const EpochMember &member : epoch->members)
        member.tree->add_samples(member.phase, record);
  } catch (...) { // out of memory, or a user's metric has the name of ours
    dropped({"samples of a kernel not stored", 1, true});
  }
}

void Aggregator::complete(std::span<const PcSampleRecord> records) noexcept {
  try {
    std::lock_guard lock(mutex_);
    drain();
    for (const EpochMember &member : epochs_.sessions()) {
      member.tree->add_samples(member.phase, records, kernel_times_);
      member.tree->begin_samples();
    }
    kernel_times_.begin_window();
  } catch (...) { // as above
    dropped({"samples of kernels not stored", 1, true});
  }
}

void Aggregator::begin_samples() noexcept {
  try {
    std::lock_guard lock(mutex_);
    drain();
    if (!kernel_times_.is_on())
      kernel_times_.start();
    kernel_times_.begin_window();
    for (const EpochMember &member : epochs_.sessions())
      member.tree->begin_samples();
  } catch (...) { // out of memory: work of before takes part in the shares
    dropped({"beginning of PC samples not noted", 1, true});
  }
}

void Aggregator::end_samples() noexcept {
  std::lock_guard lock(mutex_);
  kernel_times_.stop();
  for (const EpochMember &member : epochs_.sessions())
    member.tree->end_samples();
}

} // namespace proton
