// Callback ids of the driver calls that make or end contexts and modules, or look a kernel up,
// which may load its module.
#pragma once

#include <cstdint>

namespace proton::cupti {

inline constexpr uint32_t kModuleCalls[] = {10,  11,  235, 322, 386, 387,
                                            389, 544, 545, 645, 757,       // contexts
                                            18,  19,  20,  21,  22,  23,   // modules
                                            678, 679, 680, 681, 682, 683}; // libraries

} // namespace proton::cupti
