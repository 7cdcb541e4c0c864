// Samples of program counters in the double, as a device and CUPTI would have them.
#pragma once

#include <cstdint>

namespace fake {

struct Kernel;

/// Makes samples of a kernel that ran, if its context is sampled.
void sample_kernel(const Kernel &kernel);
/// Whether a context is sampled now; if so, kernel activity may not be enabled.
bool is_sampled();
/// CUPTI looks at the modules there are when it is used first; of those that are loaded later it
/// knows only what is loaded while it records kernels or samples, until it is detached.
void note_use();
void module_loaded(uint64_t crc);
void look_at_all_modules();
/// CUPTI loses the samples of a module that is unloaded, and of a context that is destroyed.
void forget_samples_of_module(uint64_t crc);
void forget_samples_of_context(uint32_t context);

} // namespace fake
