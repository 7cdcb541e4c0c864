// The one host clock: CLOCK_MONOTONIC, int64 nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace proton {

inline int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

} // namespace proton
