#include "collector/gpu/records/delivery.h"

#include <ctime>

#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/launches/launch_thread.h"
#include "context/thread/current.h"

namespace proton {
namespace {

constexpr int kFlushTries = 20;
constexpr int kFlushTriesInCapture = 1000; // nothing waits for the devices then
constexpr timespec kBetweenTries{0, 1'000'000};

} // namespace

Delivered deliver(RecordSink &sink, RecordSource &source) {
  constexpr uint64_t kFirst = CorrelationIds::kFirst;
  uint64_t newest = sink.pending(kFirst, CorrelationIds::kLast).newest_id;
  wait_for_open_calls(kOpenCallsMs);
  DeviceWait wait;
  if (wait.is_allowed())
    source.wait_for_devices();
  source.hand_over_records();
  // A library keeps a buffer back while something in it runs, or while its own thread reads it.
  int most = wait.is_allowed() ? kFlushTries : kFlushTriesInCapture;
  for (int tries = 1; tries < most; ++tries) {
    if (sink.pending(kFirst, newest).kernels <= source.dropped())
      break;
    nanosleep(&kBetweenTries, nullptr);
    source.hand_over_records();
  }
  return {newest, wait.is_allowed()};
}

} // namespace proton
