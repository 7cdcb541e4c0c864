// The clocks of the host, int64 nanoseconds: times are CLOCK_MONOTONIC, and dates are since 1970.
#pragma once

#include <cstdint>
#include <ctime>

namespace proton {

inline int64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

inline int64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }
inline int64_t unix_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
/// Processor time of the calling thread, and of the process.
inline int64_t thread_cpu_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
inline int64_t process_cpu_ns() noexcept { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

} // namespace proton
