// Activity records that say something about the machine or the API rather than about work on it.
// Read like those of driver/cupti/cupti_records.h.
#pragma once

#include <cstddef>

namespace proton::cupti {

/// CUpti_ActivityExternalCorrelation.
namespace external_offset {
enum : size_t { kExternalKind = 4, kExternalId = 8, kCorrelation = 16 };
}
inline constexpr size_t kExternalBytes = 24;

/// CUpti_ActivityContext3.
namespace context_offset {
enum : size_t { kContext = 4, kDevice = 8, kNullStream = 14 };
}

/// CUpti_ActivityDevice5.
namespace device_offset {
enum : size_t {
  kMemoryBandwidth = 8, ///< uint64_t, kB/s
  kMemoryBytes = 16,    ///< uint64_t
  kCoreClock = 36,      ///< uint32_t, kHz
  kMultiprocessors = 44,
  kCapabilityMajor = 104,
  kCapabilityMinor = 108,
  kDevice = 112,
  kUuid = 120, ///< 16 bytes
  kName = 136, ///< const char *
  kIsMig = 145,
};
}

/// CUpti_ActivityAPI (kKindDriver, kKindRuntime).
namespace api_offset {
enum : size_t {
  kCbid = 4,
  kStart = 8,
  kEnd = 16,
  kProcess = 24,
  kThread = 28,
  kCorrelation = 32,
  kReturn = 36,
};
}
inline constexpr size_t kApiBytes = 40;

/// CUpti_ActivityOverhead3.
namespace overhead_offset {
enum : size_t { kOverheadKind = 4, kStart = 24, kEnd = 32, kCorrelation = 40 };
}

} // namespace proton::cupti
