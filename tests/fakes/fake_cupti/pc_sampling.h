// Samples of program counters in the double: what a device, and CUPTI behind it, would have.
#pragma once

#include <cstdint>

namespace fake {

struct Kernel;

/// A kernel ran: where its context is sampled, samples of it are made.
void sample_kernel(const Kernel &kernel);
/// No context is sampled now. Kernel activity may be enabled only then.
bool is_sampled();
/// CUPTI looks at the modules there are when it is used first; of those that are loaded later it
/// knows only what is loaded while it records kernels or samples, until it is detached.
void note_use();
void module_loaded(uint64_t crc);
void look_at_all_modules();
/// What CUPTI has of a module is lost when that is unloaded, of a context when that is destroyed.
void forget_samples_of_module(uint64_t crc);
void forget_samples_of_context(uint32_t context);

} // namespace fake
