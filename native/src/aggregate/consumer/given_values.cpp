// The giving side of the aggregator: a value becomes a record in its thread's own log.
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <variant>

#include "aggregate/consumer/aggregator.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "support/fork_locks.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

/// What stands where lists of numbers were given, so that who gives one that does not fit is told
/// at once. Of the newest epoch: what it does not know, the drain counts.
class GivenLists {
public:
  GivenLists() { guard_across_fork(mutex_, LockRank::kGivenLists); }
  static GivenLists &instance() {
    static auto *lists = new GivenLists; // outlives threads of the target
    return *lists;
  }

  /// Throws Error(kMetric) when the value does not fit.
  void check(const Capture &at, const UserMetric &metric) {
    std::lock_guard lock(mutex_);
    if (std::exchange(epoch_, at.epoch) != at.epoch)
      known_.clear();
    auto [found, is_new] = known_.try_emplace({metric.metric, at.shadow, at.python}, metric.value);
    MetricValue sum = found->second;
    if (!is_new)
      add_value(sum, metric.metric->aggregation, metric.value, metric.metric->text);
  }

private:
  std::mutex mutex_;
  EpochId epoch_ = 0;
  std::map<std::tuple<const MetricName *, ContextId, ContextId>, MetricValue> known_;
};

bool is_list(const MetricValue &value) {
  MetricType type = type_of(value);
  return type == MetricType::kIntVector || type == MetricType::kDoubleVector;
}

void check(const Capture &at, const UserMetric &metric) {
  if (metric.metric->aggregation == Aggregation::kProperty)
    return;
  std::atomic<bool> &has_lists = metric.metric->has_lists;
  if (is_list(metric.value))
    has_lists.store(true, std::memory_order_relaxed);
  if (has_lists.load(std::memory_order_relaxed)) [[unlikely]]
    GivenLists::instance().check(at, metric);
}

void append(ValueRecord record, const UserMetric &metric) {
  ThreadState &thread = this_thread();
  record.metric = metric.metric->number;
  record.thread = thread.number;
  std::unique_ptr<LargeValue> large;
  if (const auto *integer = std::get_if<int64_t>(&metric.value)) {
    record.integer = *integer;
  } else if (const auto *number = std::get_if<double>(&metric.value)) {
    record.held = ValueRecord::Held::kDouble;
    record.number = *number;
  } else {
    record.held = ValueRecord::Held::kLarge;
    large = std::make_unique<LargeValue>(metric.value);
    record.large = large.get();
  }
  uint64_t lost = thread.host.lost.load(std::memory_order_relaxed);
  if (thread.host.append(record))
    request_drain();
  // A drain may have set the count to 0 meanwhile, which tells of no loss.
  if (thread.host.lost.load(std::memory_order_relaxed) <= lost)
    large.release(); // NOLINT: the record has it
}

} // namespace

void Aggregator::give(const Capture &at, std::span<const UserMetric> metrics, bool are_shown) {
  ValueRecord record;
  record.at = at;
  if (std::optional<uint64_t> scope = are_shown ? EventBook::scope_of(at) : std::nullopt) {
    record.owner = *scope;
    record.at_ns = TickClock::now_ns();
  }
  for (const UserMetric &metric : metrics)
    check(at, metric);
  for (const UserMetric &metric : metrics)
    append(record, metric);
}

void Aggregator::pay(uint64_t correlation_id, std::span<const UserMetric> metrics) {
  ValueRecord record;
  record.kind = RangeKind::kPaid;
  record.owner = correlation_id;
  record.metric = ValueRecord::kNoMetric;
  if (metrics.empty())
    this_thread().host.append(record);
  for (const UserMetric &metric : metrics)
    append(record, metric);
}

} // namespace proton
