// Activity records of libcupti, read by offset.
//
// A record only ever grows at its end: the offsets below hold from CUDA 12.4 to 13.5, whatever the
// version of the library, while sizes differ; cuptiActivityGetNextRecord steps over the sizes. A
// field is present when the record is at least as long as the version that brought it, which
// kKernelBytes and its kind list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace proton::cupti {

enum ActivityKind : int { // CUpti_ActivityKind
  kKindMemcpy = 1,
  kKindMemset = 2,
  kKindKernel = 3, ///< serialises kernels; the record is that of kKindConcurrentKernel
  kKindDevice = 8,
  kKindConcurrentKernel = 10,
  kKindMemcpyPeer = 22, ///< CUPTI_ACTIVITY_KIND_MEMCPY2
  kKindGraphTrace = 51, ///< one record per graph launch, instead of its kernels, copies and sets
};

inline constexpr uint32_t kFlushForced = 1; ///< flag of cuptiActivityFlushAll

/// Every record begins with its kind.
namespace record_offset {
enum : size_t { kKind = 0 };
}

/// CUpti_ActivityKernel5 (CUDA 11) to 13 (CUDA 13.5).
namespace kernel_offset {
enum : size_t {
  kRegisters = 6, ///< uint16_t
  kStart = 16,    ///< uint64_t, ns
  kEnd = 24,      ///< uint64_t, ns
  kDevice = 40,
  kContext = 44,
  kStream = 48,
  kGrid = 52,          ///< int32_t[3]
  kBlock = 64,         ///< int32_t[3]
  kStaticShared = 76,  ///< int32_t, bytes
  kDynamicShared = 80, ///< int32_t, bytes
  kLocalPerThread = 84,
  kCorrelation = 92,
  kName = 104,      ///< const char *, lives as long as the module
  kGraphNode = 144, ///< uint64_t; 0: not launched by a graph
  kGraph = 156,     ///< uint32_t, id of the executable graph
};
} // namespace kernel_offset

/// Bytes of CUpti_ActivityKernel<5 + index>.
inline constexpr size_t kKernelBytes[] = {160, 168, 176, 200, 208, 216, 224, 232, 248};
inline constexpr int kFirstKernelVersion = 5;
inline constexpr int kLastKernelVersion = 13;

/// CUpti_ActivityMemcpy5 to 7.
namespace memcpy_offset {
enum : size_t {
  kCopyKind = 4, ///< uint8_t, CopyKind
  kFlags = 7,
  kBytes = 8, ///< uint64_t
  kStart = 16,
  kEnd = 24,
  kDevice = 32,
  kContext = 36,
  kStream = 40,
  kCorrelation = 44,
  kGraphNode = 64,
  kGraph = 72,
};
}
inline constexpr size_t kMemcpy5Bytes = 88;
inline constexpr size_t kMemcpy6Bytes = 96;

enum CopyKind : uint8_t {
  kCopyHostToDevice = 1,
  kCopyDeviceToHost = 2,
  kCopyDeviceToDevice = 8,
  kCopyHostToHost = 9,
};

/// CUpti_ActivityMemcpyPtoP4 (kKindMemcpyPeer).
namespace peer_offset {
enum : size_t {
  kCopyKind = 4,
  kBytes = 8,
  kStart = 16,
  kEnd = 24,
  kDevice = 32,
  kContext = 36,
  kStream = 40,
  kCorrelation = 60,
  kGraphNode = 72,
  kGraph = 80,
};
}
inline constexpr size_t kPeerBytes = 96;

/// CUpti_ActivityMemset4.
namespace memset_offset {
enum : size_t {
  kValue = 4,
  kBytes = 8,
  kStart = 16,
  kEnd = 24,
  kDevice = 32,
  kContext = 36,
  kStream = 40,
  kCorrelation = 44,
  kFlags = 48, ///< uint16_t
  kGraphNode = 64,
  kGraph = 72,
};
}
inline constexpr size_t kMemsetBytes = 88;

/// CUpti_ActivityGraphTrace (48 bytes, no end device) and GraphTrace2.
namespace graph_trace_offset {
enum : size_t {
  kCorrelation = 4,
  kStart = 8,
  kEnd = 16,
  kDevice = 24,
  kGraph = 28, ///< id of the executable graph
  kContext = 32,
  kStream = 36,
};
}
inline constexpr size_t kGraphTraceBytes = 48;
inline constexpr size_t kGraphTrace2Bytes = 56;

/// Reads a field of a record; `record` need not be aligned.
template <typename T> T read(const void *record, size_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char *>(record) + offset, sizeof value);
  return value;
}

// Activity records that say something about the machine or the API rather than about work on it.
// Read like those of driver/cupti/cupti_records.h.

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
  kDevice = 112,
  kUuid = 120, ///< 16 bytes
  kName = 136, ///< const char *
};
}

/// CUpti_ActivityAPI (kKindDriver, kKindRuntime).
namespace api_offset {
enum : size_t {
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
