#include "collector/hip/hip_engine.h"

#include <pthread.h>

#include <string>

#include "context/thread/graph_capture.h"
#include "driver/own_work.h"
#include "support/error.h"
#include "support/tick_clock.h"

namespace proton {
namespace {

std::atomic<bool> g_is_forked{false};

} // namespace

bool is_forked_from_collector() noexcept { return g_is_forked.load(std::memory_order_relaxed); }

void watch_forks() noexcept {
  static const int watched = pthread_atfork(nullptr, nullptr, [] {
    g_is_forked.store(true);
    set_open_capture(nullptr); // its locks are the parent's
    forget_captures_after_fork();
  });
  static_cast<void>(watched);
}

void refuse_forked(const char *library) {
  if (is_forked_from_collector())
    throw Error(ErrorCode::kUnavailable,
                std::string(library) +
                    " does not work in a child that was forked while its parent was profiled; "
                    "start the child by spawn or exec");
}

void HipEngine::open_hip(const HipOptions &options) {
  if (driver)
    return;
  driver = HipDriver::open(options.hip_candidates);
  hip_devices.emplace(*driver);
  hip_graphs.set_driver(&*driver);
  calls.set_driver(&*driver);
  records.devices().set_source(&*hip_devices);
}

void HipEngine::arm(const HipOptions &options, ClockPairs::Read read_clock, const void *library) {
  TickClock::calibrate(); // launches are stamped with it
  records.start_clock(read_clock, library);
  calls.set_copies(options.copies);
  records.set_copies(options.copies);
  calls.warn_again();
  wants_ranges.store(options.roctx);
  launches.arm();
  is_running = true;
}

void HipEngine::wait_for_devices() noexcept {
  OwnWork own; // the calls are ours
  try {
    // Asked before anything ran, HIP would start in a process that may never use it.
    if (!launches.contexts().list().empty())
      driver->synchronize(); // a device that fails has nothing left to wait for
  } catch (...) {            // no memory: only the records are waited for
  }
}

void HipEngine::flush(RecordSource &source) {
  Delivered delivered = deliver(sink, source);
  if (!delivered.is_waited)
    return; // what has no record yet may still run: a later flush settles it
  replays.end_up_to(delivered.newest);
  uint64_t dropped = records.take_dropped();
  sink.settled({CorrelationIds::kFirst, delivered.newest, dropped != 0, dropped});
}

void HipEngine::disarm(RecordSource &source) {
  flusher.stop();
  deliver(sink, source);
  launches.disarm();
  wants_ranges.store(false);
  wait_for_open_calls(kOpenCallsMs);
  source.hand_over_records();
  records.end_clock();
  launches.contexts().forget_all();
  replays.end_up_to(CorrelationIds::kLast);
  sink.settled({CorrelationIds::kFirst, CorrelationIds::kLast, true, records.take_dropped()});
  is_running = false;
}

void HipEngine::range(uint32_t operation, const char *message) noexcept {
  if (!wants_ranges.load(std::memory_order_relaxed) || is_forked_from_collector())
    return;
  LaunchThread *thread = this_launch_thread();
  if (!thread)
    return;
  try {
    if (operation == roctx::kRangePush)
      thread->markers.push(nullptr, message && *message ? message : "<roctx range>");
    else if (operation == roctx::kRangePop)
      thread->markers.pop(nullptr);
  } catch (...) { // no memory: the range is lost, and its end may end another one
  }
}

} // namespace proton
