#include "context/thread/self_cost.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "context/thread/shadow_stack.h"
#include "record/record_log.h"
#include "support/clock.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

/// A call that took longer was interrupted: the time is another process's.
constexpr int64_t kLongestCall_ns = 100'000;

struct Totals {
  std::atomic<uint64_t> seen[kCallKinds];
  std::atomic<uint64_t> timed;
  std::atomic<int64_t> timed_ns;
  std::atomic<int64_t> reading_ns;
};
constinit Totals g_totals{};

/// How much longer an interval seems because the clock is read.
double clock_read_ns() noexcept {
  constexpr int kReads = 64;
  int64_t start_ns = TickClock::now_ns(), now_ns = start_ns;
  for (int i = 0; i < kReads; ++i)
    now_ns = TickClock::now_ns();
  return static_cast<double>(now_ns - start_ns) / kReads;
}

} // namespace

constinit thread_local TimedCall::Calls TimedCall::t_calls;

void TimedCall::begin() noexcept {
  t_calls.until_timed = kEvery;
  start_ns_ = TickClock::now_ns();
}

void TimedCall::end() const noexcept {
  int64_t took_ns = TickClock::now_ns() - start_ns_;
  if (took_ns >= 0 && took_ns <= kLongestCall_ns) {
    g_totals.timed.fetch_add(1, std::memory_order_relaxed);
    g_totals.timed_ns.fetch_add(took_ns, std::memory_order_relaxed);
  }
  hand_over();
}

void TimedCall::hand_over() noexcept {
  for (size_t kind = 0; kind < kCallKinds; ++kind)
    g_totals.seen[kind].fetch_add(std::exchange(t_calls.seen[kind], 0), std::memory_order_relaxed);
}

SelfCost SelfCost::now() noexcept {
  TimedCall::hand_over();
  auto seen = [](CallKind kind) {
    return g_totals.seen[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
  };
  SelfCost cost;
  cost.operators = seen(CallKind::kOperator);
  cost.nodes = seen(CallKind::kNode);
  cost.timed = g_totals.timed.load(std::memory_order_relaxed);
  cost.timed_ns = g_totals.timed_ns.load(std::memory_order_relaxed);
  cost.reading_ns = g_totals.reading_ns.load(std::memory_order_relaxed);
  return cost;
}

SelfCost SelfCost::since(const SelfCost &before) const noexcept {
  SelfCost cost = *this;
  cost.operators -= before.operators;
  cost.nodes -= before.nodes;
  cost.timed -= before.timed;
  cost.timed_ns -= before.timed_ns;
  cost.reading_ns -= before.reading_ns;
  return cost;
}

int64_t SelfCost::spent_ns() const noexcept {
  double calls_ns =
      static_cast<double>(timed_ns) - static_cast<double>(timed) * clock_read_ns();
  return static_cast<int64_t>(std::max(0.0, calls_ns) * TimedCall::kEvery) + reading_ns;
}

void add_reading_ns(int64_t took_ns) noexcept {
  g_totals.reading_ns.fetch_add(took_ns, std::memory_order_relaxed);
}

double event_cost_ns() {
  constexpr int kRounds = 512;
  // A stack and a log of our own: no thread reads them, and no epoch keeps the one frame.
  auto stack = std::make_unique<ShadowStack>();
  RecordLog<HostEntry> log;
  SessionState now;
  now.active = true;
  HashedName name = hashed("cost of an event");
  stack->push(name, FrameKind::kScope, now); // the first push allocates
  stack->pop(now);
  int64_t start_ns = monotonic_ns();
  for (int i = 0; i < kRounds; ++i) {
    RangeRecord record;
    stack->push(name, FrameKind::kScope, now).set_start(TickClock::now_ns());
    record.end_ns = TickClock::now_ns();
    record.duration_ns = record.end_ns - stack->top().start();
    stack->pop(now);
    log.append(record);
  }
  return static_cast<double>(monotonic_ns() - start_ns) / kRounds;
}

} // namespace proton
