// The launching side of the aggregator: a launch becomes a record in its thread's own log.
#include <algorithm>
#include <ctime>
#include <utility>

#include "aggregate/consumer/aggregator.h"
#include "aggregate/consumer/drain_thread.h"
#include "context/thread/current.h"
#include "context/thread/thread_state.h"
#include "correlation/device_values.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

constexpr int64_t kLongCallNs = int64_t{1} << 31;
constexpr int kMostTries = 50;
constexpr timespec kBetweenTries{0, 50'000};

/// Consumes what was noted, also where another thread has the logs for a while: a graph that leaves
/// values fills their ring meanwhile.
void keep_pace() noexcept {
  for (int tries = 0; tries < kMostTries && !Aggregator::try_drain(); ++tries)
    nanosleep(&kBetweenTries, nullptr);
}

} // namespace

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
  LaunchRecord record;
  record.correlation_id = correlation_id;
  record.at = capture_current();
  record.code = code & 0xffffff;
  record.kind = kind;
  record.awaits_return = situation().wants_timeline;
  record.has_tick_time = true;
  record.called_ns = TickClock::now_ns();
  return note(record);
}

void Aggregator::returned(uint64_t correlation_id) noexcept {
  LaunchRecord record;
  record.correlation_id = correlation_id;
  record.kind = LaunchKind::kReturned;
  record.called_ns = TickClock::now_ns();
  try {
    ThreadState &thread = this_thread();
    int64_t took_ns = record.called_ns - thread.call.called_ns;
    bool is_its = thread.call.correlation_id == correlation_id && took_ns < kLongCallNs;
    if (is_its && thread.launches.mark(thread.call.position,
                                       static_cast<uint32_t>(std::max<int64_t>(took_ns, 1))))
      return;
  } catch (...) { // no memory for this thread's state: its launch was not noted
  }
  note(record); // it was read before it returned, or others came between
}

void Aggregator::launched_own(uint64_t correlation_id, LaunchKind kind) noexcept {
  LaunchRecord record; // of no epoch, as where nobody listens
  record.correlation_id = correlation_id;
  record.kind = kind;
  note(record);
}

uint64_t Aggregator::scoped() noexcept {
  LaunchRecord record;
  try {
    record.correlation_id = std::exchange(this_thread().newest_kernel, 0);
  } catch (...) { // no memory for this thread's state, so no launch of it was noted
  }
  record.kind = LaunchKind::kScoped;
  if (record.correlation_id != 0)
    note(record);
  return record.correlation_id;
}

EpochId Aggregator::note(const LaunchRecord &record) noexcept {
  try {
    ThreadState &thread = this_thread();
    if (record.kind == LaunchKind::kKernel && record.at.epoch != 0)
      thread.newest_kernel = record.correlation_id;
    bool is_filled = thread.launches.append(record);
    if (record.awaits_return)
      thread.call = {record.correlation_id, record.called_ns, thread.launches.newest()};
    // Who launches graphs that leave values reads them himself: a ring has fewer entries than the
    // background would wait for.
    if (is_filled && DeviceValues::exist())
      keep_pace();
    else if (is_filled)
      request_background_drain();
  } catch (...) { // no memory for this thread's state
    dropped({"no memory for host records", 1});
  }
  return record.at.epoch;
}

void Aggregator::retracted(uint64_t correlation_id) noexcept {
  LaunchRecord record;
  record.correlation_id = correlation_id;
  record.kind = LaunchKind::kRetracted;
  note(record);
}

} // namespace proton
