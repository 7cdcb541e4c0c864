#include "aggregate/consumer/given_values.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <variant>

#include "aggregate/consumer/aggregator.h"
#include "context/thread/current.h"
#include "context/thread/host_range.h"
#include "context/thread/thread_state.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

std::atomic<bool> g_checks_types{false};

void check_same_type(const MetricValue &sum, const UserMetric &given) {
  constexpr const char *kTypes[] = {"int64_t", "double", "vector<int64_t>", "vector<double>",
                                    "string"};
  if (sum.index() != given.value.index())
    throw Error(ErrorCode::kMetric, "Metric value type mismatch for valueId 0 (" +
                                        given.metric->text + "): current=" + kTypes[sum.index()] +
                                        ", new=" + kTypes[given.value.index()] +
                                        "; give the metric one type on each call path");
}

/// What stands where lists of numbers were given, or values of a type that is checked, so that
/// giving one that does not fit fails at once. Of the newest epoch: what it does not know, the
/// drain counts.
class KnownValues {
public:
  KnownValues() { guard_across_fork(mutex_, LockRank::kGivenLists); }
  static KnownValues &instance() {
    static auto *known = new KnownValues; // the target's threads may need it to the end
    return *known;
  }

  /// Throws Error(kMetric) when the value does not fit.
  void check(const Capture &at, const UserMetric &metric, bool checks_type) {
    std::lock_guard lock(mutex_);
    if (std::exchange(epoch_, at.epoch) != at.epoch)
      known_.clear();
    auto [found, is_new] = known_.try_emplace({metric.metric, at.shadow, at.python}, metric.value);
    MetricValue sum = found->second;
    if (!is_new && checks_type)
      check_same_type(sum, metric);
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
  const bool checks_type = g_checks_types.load(std::memory_order_relaxed);
  if (has_lists.load(std::memory_order_relaxed) || checks_type) [[unlikely]]
    KnownValues::instance().check(at, metric, checks_type);
}

/// Fills in the value of a record of either kind, and appends it to the thread's log.
template <typename Record>
void append(ThreadState &thread, Record record, const UserMetric &metric) {
  record.metric = metric.metric->number;
  std::unique_ptr<LargeValue> large;
  if (const auto *integer = std::get_if<int64_t>(&metric.value)) {
    record.integer = *integer;
  } else if (const auto *number = std::get_if<double>(&metric.value)) {
    record.held = HeldValue::kDouble;
    record.number = *number;
  } else {
    record.held = HeldValue::kLarge;
    large = std::make_unique<LargeValue>(metric.value);
    record.large = large.get();
  }
  uint64_t lost = thread.host.lost.load(std::memory_order_relaxed);
  if (thread.host.append(record))
    request_drain();
  // A drain may have set the count to 0 meanwhile: then nothing was lost here.
  if (thread.host.lost.load(std::memory_order_relaxed) <= lost)
    large.release(); // NOLINT: the record has it
}

} // namespace

void check_value_types(bool checks) noexcept {
  g_checks_types.store(checks, std::memory_order_relaxed);
}

void give_values(const Capture &at, std::span<const UserMetric> metrics, bool are_shown) {
  ThreadState &thread = this_thread();
  ValueRecord record;
  record.at = at;
  record.thread = thread.number;
  if (std::optional<uint64_t> scope = are_shown ? EventBook::scope_of(at) : std::nullopt) {
    record.scope_id = *scope;
    record.at_ns = TickClock::now_ns();
  }
  for (const UserMetric &metric : metrics)
    check(at, metric);
  for (const UserMetric &metric : metrics)
    append(thread, record, metric);
}

void give_values_or_capture(const Capture &at, const std::vector<UserMetric> &metrics) {
  if (is_capturing()) { // nothing runs now; each launch of the graph adds them
    CaptureId values = Aggregator::Held().graphs().keep_values(at, metrics);
    open_capture()->add_metrics(values);
    return;
  }
  for (const UserMetric &metric : metrics)
    if (metric.on_device)
      throw Error(ErrorCode::kMetric, "metric '" + metric.metric->text +
                                          "' is left by a graph, but none is being captured");
  give_values(at, metrics, session_state().wants_timeline);
}

void give_launch_values(uint64_t correlation_id, std::span<const UserMetric> metrics) {
  ThreadState &thread = this_thread();
  if (metrics.empty()) {
    NoLaunchValue none;
    none.launch = correlation_id;
    thread.host.append(none);
  }
  LaunchValueRecord record;
  record.launch = correlation_id;
  for (const UserMetric &metric : metrics)
    append(thread, record, metric);
}

} // namespace proton
