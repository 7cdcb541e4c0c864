// What hardware counters of a device said during a short time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace proton {

/// Samples one after the other, each of the whole device between two times.
struct CounterBurst {
  const char *device_kind = "CUDA"; ///< these two name the device
  int32_t device_index = 0;
  std::shared_ptr<const std::vector<std::string>> metrics; ///< m of them, by their vendor's names
  std::vector<int64_t> start_ns;                           ///< n of them, ascending
  std::vector<int64_t> end_ns;                             ///< n of them
  std::vector<double> counts;                              ///< n rows of m values
};

} // namespace proton
