#include "context/thread/self_cost.h"

#include <memory>

#include "context/thread/shadow_stack.h"
#include "record/record_log.h"
#include "support/clock.h"
#include "support/tick_clock.h"

namespace proton {

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
