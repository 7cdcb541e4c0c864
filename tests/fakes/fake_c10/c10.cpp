// A double of libc10.so: the functions to which torch's allocators report what they do.
#include <cstddef>
#include <cstdint>

#include "fake_c10/control.h"

namespace c10 {

struct Device {
  int8_t type;
  int8_t index;
};

namespace {
uint64_t g_reports = 0;
} // namespace

__attribute__((visibility("default"))) void reportMemoryUsageToProfiler(void *, int64_t, size_t,
                                                                        size_t, Device) {
  ++g_reports;
}

__attribute__((visibility("default"))) void reportOutOfMemoryToProfiler(int64_t, size_t, size_t,
                                                                        Device) {
  ++g_reports;
}

} // namespace c10

extern "C" uint64_t fake_c10_reports() { return c10::g_reports; }
