// Hardware counters in the double, as a device and CUPTI would have them.
#pragma once

#include <cstdint>

namespace fake {

struct Kernel;

/// A kernel ran from `start_ns` to `end_ns`: what counters say of that time.
void count_kernel(const Kernel &kernel, uint64_t start_ns, uint64_t end_ns);

} // namespace fake
