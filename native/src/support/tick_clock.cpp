#include "support/tick_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <mutex>
#include <string_view>

namespace proton {

std::atomic<uint64_t> TickClock::scale_{0};

namespace {

#if defined(__x86_64__)

constexpr int64_t kCalibrationNs = 4'000'000;

/// True if the kernel checked that the counters of all processors agree and never stop.
bool kernel_trusts_counter() noexcept {
  int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  char text[16] = {};
  ssize_t size = read(file, text, sizeof(text));
  close(file);
  return size == 4 && std::string_view(text, 4) == "tsc\n";
}

struct Reading {
  int64_t ns = 0;
  uint64_t ticks = 0;
};

/// Reads both clocks at one moment: the fastest of several readings.
Reading read_both() noexcept {
  Reading best;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 16; ++i) {
    uint64_t before = __builtin_ia32_rdtsc();
    int64_t ns = monotonic_ns();
    uint64_t after = __builtin_ia32_rdtsc();
    if (after - before >= least)
      continue;
    least = after - before;
    best = {ns, before + least / 2};
  }
  return best;
}

uint64_t measured_scale(int shift) noexcept {
  if (!kernel_trusts_counter())
    return 0;
  Reading first = read_both(), last;
  do
    last = read_both();
  while (last.ns - first.ns < kCalibrationNs);
  if (last.ticks <= first.ticks)
    return 0;
  auto ns = static_cast<unsigned __int128>(last.ns - first.ns) << shift;
  return static_cast<uint64_t>(ns / (last.ticks - first.ticks));
}

#else

uint64_t measured_scale(int) noexcept { return 0; }

#endif

} // namespace

bool TickClock::calibrate() {
  static std::once_flag once;
  std::call_once(once, [] { scale_.store(measured_scale(kShift)); });
  return scale_.load() != 0;
}

} // namespace proton
