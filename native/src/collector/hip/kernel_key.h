// What distinguishes kernels of one graph: records of AMD's libraries do not name the node.
#pragma once

#include <cstdint>

namespace proton {

/// Name in the upper half, shape in the lower; 0 for a null name. Names may end in ".kd".
uint64_t kernel_key(const char *name, const uint32_t (&work_items)[3],
                    const uint32_t (&block)[3]) noexcept;
inline uint32_t name_of_key(uint64_t key) noexcept { return static_cast<uint32_t>(key >> 32); }

/// Length of a kernel's name without the ".kd" of its descriptor.
uint32_t plain_length(const char *name) noexcept;

} // namespace proton
