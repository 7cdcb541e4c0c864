// The samples of one burst, on their way from the device to the recorded program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace proton {

struct CounterSamples {
  std::vector<std::string> metrics; ///< m of them, by their vendor's names
  std::vector<int64_t> start_ns;    ///< n of them, ascending
  std::vector<int64_t> end_ns;      ///< n of them
  std::vector<double> values;       ///< n rows of m values
  uint64_t lost = 0;                ///< samples without times or values
  bool is_image_full = false;
  bool is_buffer_full = false;
  int64_t open_ns = 0; ///< what it took: this and the following
  int64_t decode_ns = 0;
  int64_t info_ns = 0; ///< for the times of samples
  int64_t evaluate_ns = 0;
};

} // namespace proton
