// Consumes what host threads noted: launches, ranges and values.
#include <algorithm>
#include <memory>
#include <utility>

#include "aggregate/consumer/aggregator.h"
#include "context/thread/current.h"
#include "context/thread/thread_state.h"
#include "support/clock.h"
#include "support/error.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

constexpr uint64_t kSliceRecords = 4096; ///< about a millisecond

/// The value, taken from the record.
MetricValue take_value(const ValueRecord &record) {
  switch (record.held) {
  case ValueRecord::Held::kInt:
    return record.integer;
  case ValueRecord::Held::kDouble:
    return record.number;
  default:
    return std::move(std::unique_ptr<LargeValue>(record.large)->value);
  }
}

} // namespace

template <typename TakeMark>
void Aggregator::add_launch(LaunchRecord record, ThreadState &thread, TakeMark take_mark) {
  if (record.kind == LaunchKind::kThread) {
    thread.launching = static_cast<uint32_t>(record.correlation_id);
    return;
  }
  if (record.kind == LaunchKind::kRetracted) {
    retract(record.correlation_id);
    return;
  }
  if (record.kind == LaunchKind::kScoped) {
    event_book.expect_scopes(record.correlation_id);
    return;
  }
  if (record.kind == LaunchKind::kReturned) {
    event_book.returned(record.correlation_id, ticks_.monotonic(record.called_ns));
    return;
  }
  int64_t tick_ns = record.has_tick_time ? record.called_ns : 0;
  int64_t returned_ns = 0;
  if (uint32_t took_ns = record.awaits_return ? take_mark() : 0) {
    returned_ns = ticks_.monotonic(tick_ns + took_ns);
    record.awaits_return = false;
  }
  if (record.has_tick_time)
    record.called_ns = ticks_.monotonic(record.called_ns);
  record.has_tick_time = false;
  Epoch *epoch = find_epoch(record.at.epoch);
  if (record.kind == LaunchKind::kGraph)
    graph_book.add_launch(record);
  else
    add_single(record, epoch);
  if (epoch && epoch->has_events())
    event_book.add_launch(record, *epoch, {thread.launching, tick_ns, returned_ns});
}

void Aggregator::add_single(const LaunchRecord &record, Epoch *epoch) {
  if (!epoch && record.at.epoch != 0) {
    if (record.kind == LaunchKind::kKernel)
      launches.forget();
    return;
  }
  bool is_owed = record.kind == LaunchKind::kKernel;
  if (epoch)
    epoch->counts.launches += is_owed ? 1 : 0;
  std::optional<LaunchRecord> replaced = launches.add(record);
  bool was_owed = replaced && replaced->kind == LaunchKind::kKernel;
  if (Epoch *older = was_owed ? find_epoch(replaced->at.epoch) : nullptr) {
    ++older->counts.dropped;
    lose("correlation id used again before its record came", 1, older);
  }
}

void Aggregator::add_range(const RangeRecord &record) {
  Epoch *epoch = find_epoch(record.at.epoch);
  if (!epoch)
    return;
  epoch->counts.ranges += record.kind == RangeKind::kSeen ? 0 : 1;
  range_nodes_.clear();
  for (const EpochMember &member : epoch->members)
    range_nodes_.push_back(member.tree->add_range(member.phase, record));
  if (epoch->has_events())
    event_book.add_range(record, *epoch, range_nodes_);
}

void Aggregator::add_value(const ValueRecord &record) {
  if (record.kind == RangeKind::kPaid && (debts_.empty() || debts_.back().launch != record.owner))
    debts_.push_back({record.owner, {}});
  if (record.metric == ValueRecord::kNoMetric)
    return;
  UserMetric metric(MetricName::numbered(record.metric), take_value(record));
  if (record.kind == RangeKind::kPaid)
    debts_.back().metrics.push_back(std::move(metric));
  else if (add_value(record.at, metric) && record.owner != 0)
    event_book.add_value(record, metric);
}

bool Aggregator::add_value(const Capture &at, const UserMetric &metric) {
  Epoch *epoch = find_epoch(at.epoch);
  if (!epoch)
    return false; // no session listens any more
  try {
    for (const EpochMember &member : epoch->members)
      member.tree->add_metric(member.phase, at, metric);
    ++epoch->counts.metrics;
    return true;
  } catch (const Error &) {
    lose("metric that does not fit earlier ones of its call path", 1, epoch);
    return false;
  }
}

void Aggregator::pay_debts() {
  std::vector<Debt> unknown; // launched meanwhile: the next drain knows
  for (Debt &debt : std::exchange(debts_, {})) {
    if (!launches.find(debt.launch) && !std::exchange(debt.is_old, true))
      unknown.push_back(std::move(debt));
    else if (std::optional<Capture> at = withdraw(debt.launch))
      for (const UserMetric &metric : debt.metrics)
        add_value(*at, metric);
  }
  debts_ = std::move(unknown);
}

bool Aggregator::drain_thread(ThreadState &thread, uint64_t &most) {
  if (!std::exchange(thread.is_fixed, true)) { // values are given before the launches they are of
    thread.launches.fix_end();
    thread.host.fix_end();
  }
  bool is_whole = thread.host.consume(
      [&](const HostRecord &record) {
        try {
          if (record.kind() == RangeKind::kValue || record.kind() == RangeKind::kPaid)
            add_value(record.value);
          else
            add_range(record.range);
        } catch (...) {
          lose("host record not stored", 1, nullptr);
        }
      },
      most);
  is_whole = is_whole && thread.launches.consume(
                             [&](const LaunchRecord &record, auto take_mark) {
                               try {
                                 add_launch(record, thread, take_mark);
                               } catch (...) {
                                 lose("launch record not stored", 1, nullptr);
                               }
                             },
                             most);
  thread.is_fixed = !is_whole;
  uint64_t lost = thread.launches.lost.exchange(0) + thread.host.lost.exchange(0);
  if (lost != 0)
    lose("no memory for host records", lost, nullptr);
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
    pay_debts();
  if (Epoch *epoch = current_epoch())
    epoch->counts.drain_ns += monotonic_ns() - start_ns;
  return !thread;
}

void Aggregator::drain() {
  if (resume_)
    drain_until(~uint64_t{0}); // to the ends that were fixed earlier
  drain_until(~uint64_t{0});
}

bool Aggregator::drain_slice() { return drain_until(kSliceRecords); }

bool Aggregator::try_drain() noexcept {
  try {
    Aggregator &aggregator = instance();
    std::unique_lock lock(aggregator.mutex, std::try_to_lock);
    if (!lock.owns_lock())
      return false;
    aggregator.drain();
  } catch (...) { // the records stay in their logs for the next drain
  }
  return true;
}

} // namespace proton
