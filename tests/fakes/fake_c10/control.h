// Controls of the doubles of torch's libc10.so and libc10_cuda.so.
#pragma once

#include <cstdint>

extern "C" {

/// How many reports reached the double of libc10.
__attribute__((visibility("default"))) uint64_t fake_c10_reports();

/// Allocates on a device, as torch would count it: in steps of 512 bytes. Returns the address.
__attribute__((visibility("default"))) uint64_t fake_c10_allocate(int64_t bytes, int device);
__attribute__((visibility("default"))) void fake_c10_free(uint64_t address);
/// Asks for bytes that there are not.
__attribute__((visibility("default"))) void fake_c10_fail(int64_t bytes, int device);
/// What is allocated on a device, and was at most.
__attribute__((visibility("default"))) int64_t fake_c10_allocated(int device);
__attribute__((visibility("default"))) int64_t fake_c10_max_allocated(int device);
/// Counts what an allocator that does not report would hold beside.
__attribute__((visibility("default"))) void fake_c10_hold_silently(int64_t bytes, int device);
}
