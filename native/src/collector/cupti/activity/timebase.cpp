#include "collector/cupti/activity/timebase.h"

#include <ctime>

#include "support/clock.h"

namespace proton {
namespace {

extern "C" uint64_t proton_bench_monotonic_time() { return static_cast<uint64_t>(monotonic_ns()); }

extern "C" uint64_t proton_bench_real_time() { // CUPTI's own choice on Linux
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

bool read_clock(const void *library, uint64_t &time_ns) noexcept {
  const auto &cupti = static_cast<const CuptiLibrary *>(library)->functions();
  return cupti.get_timestamp(&time_ns) == cupti::kSuccess;
}

} // namespace

void Timebase::start(const CuptiLibrary &library, bool vendor_clock) {
  auto give_clock = library.functions().activity_register_timestamp_callback;
  converts_ =
      vendor_clock || !give_clock || give_clock(proton_bench_monotonic_time) != cupti::kSuccess;
  pairs_.start(read_clock, &library);
  observe();
}

void Timebase::stop(const CuptiLibrary &library) noexcept {
  pairs_.end();
  if (!converts_)
    library.functions().activity_register_timestamp_callback(proton_bench_real_time);
}

} // namespace proton
