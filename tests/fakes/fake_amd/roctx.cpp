// The double of libroctx64: ranges of the program's own calls go to the registered callback.
// Profiler libraries get theirs by fake_amd_range_push.
#include "driver/hip/hip_driver.h"
#include "tracer.h"

namespace roctx = proton::roctx;

namespace {

constexpr uint32_t kDomain = 6; // ACTIVITY_DOMAIN_ROCTX
std::atomic<roctx::TracerCallback> registered{nullptr};
std::atomic<uint64_t> next_range{1};
thread_local int depth = 0;

void tell(uint32_t operation, const char *message, uint64_t range) {
  roctx::CallbackData data{message, range};
  const roctx::TracerCallback callback = registered;
  if (callback != nullptr)
    callback(kDomain, operation, &data);
}

} // namespace

FAKE_EXPORT void roctxRegisterTracerCallback(roctx::TracerCallback callback) {
  registered = callback;
}
FAKE_EXPORT void roctxMarkA(const char *message) { tell(roctx::kMark, message, 0); }
FAKE_EXPORT int roctxRangePushA(const char *message) {
  tell(roctx::kRangePush, message, 0);
  return depth++;
}
FAKE_EXPORT int roctxRangePop() {
  tell(roctx::kRangePop, nullptr, 0);
  return --depth;
}
FAKE_EXPORT uint64_t roctxRangeStartA(const char *message) {
  const uint64_t range = next_range.fetch_add(1);
  tell(roctx::kRangeStart, message, range);
  return range;
}
FAKE_EXPORT void roctxRangeStop(uint64_t range) { tell(roctx::kRangeStop, nullptr, range); }
