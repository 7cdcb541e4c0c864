#include "collector/cpu/cpu_collector.h"

#include "collector/cpu/op_stack.h"
#include "collector/cpu/torch_observer.h"
#include "context/thread/current.h"
#include "support/tick_clock.h"

namespace proton {

void CpuCollector::start() {
  TickClock::calibrate();
  set_op_depth(max_depth_);
  if (event_)
    PerfCounter::instance().start(*event_);
  set_ops_enabled(true);
}

void CpuCollector::flush() {
  if (!session_state().active)
    return; // no session would see the count
  if (uint64_t strays = take_stray_ops(); strays != 0)
    sink_.dropped({"torch operator ended out of order or on another thread", strays});
  if (uint64_t failures = PerfCounter::instance().take_failures(); failures != 0)
    sink_.dropped({"a thread whose instructions could not be counted", failures});
}

void CpuCollector::stop() {
  set_ops_enabled(false);
  if (event_)
    PerfCounter::instance().stop();
  TorchObserver::instance().detach(TorchObserver::kTimes);
}

} // namespace proton
