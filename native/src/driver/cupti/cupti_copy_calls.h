// Callback ids of the driver calls that copy or set memory, whose correlation ids copy and set
// records name. Calls of the 32-bit API before CUDA 3.2 are left out.
#pragma once

#include <cstdint>

namespace proton::cupti {

inline constexpr uint32_t kCopyCalls[] = {
    216, 218, 220, 222, 224, 226, 248, 249, 250, 251, 252, 253, 254, 276, 277, 278, 279,
    280, 281, 282, 283, 284, 285, 286, 287, 288, 289, 290, 291, 292, 293, 305, 306, 318,
    319, 320, 321, 397, 398, 399, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410,
    411, 412, 413, 414, 415, 416, 418, 419, 420, 421, 422, 423, 424, 425, 426, 427, 428,
    429, 430, 431, 432, 433, 776, 777, 778, 779, 796, 797, 798, 799};

/// Whether it is cuMemcpyBatchAsync or cuMemcpy3DBatchAsync: one call may make many records.
inline constexpr bool is_batch_of_copies(uint32_t cbid) noexcept {
  return (cbid >= 776 && cbid <= 779) || (cbid >= 796 && cbid <= 799);
}

} // namespace proton::cupti
