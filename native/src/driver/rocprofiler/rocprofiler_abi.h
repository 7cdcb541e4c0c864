// Our own description of the part of rocprofiler-sdk's ABI (librocprofiler-sdk, 1.0 and later) that
// is used here: status codes, kinds and what callbacks and buffers are called with. AMD's headers
// are not needed to build; where they are found, a test compares with them what they have
// (tests/native/driver).
//
// Structures of the library begin with their size and only ever grow at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace proton::rocprofiler {

using Status = int; // rocprofiler_status_t
enum StatusCode : int {
  kSuccess = 0,
  kError = 1,
  kErrorContextNotFound = 2,
  kErrorBufferNotFound = 3,
  kErrorContextConflict = 12,
  kErrorBufferBusy = 14,
  kErrorServiceAlreadyConfigured = 15,
  kErrorConfigurationLocked = 16, ///< asked for after the configuration: too late
  kErrorNotImplemented = 17,
  kErrorIncompatibleAbi = 18,
  kErrorInvalidArgument = 19,
  kErrorFinalized = 21,
  kErrorIncompatibleKernel = 28, ///< the amdgpu driver is too old
  kErrorOutOfResources = 29,
  kErrorPermissionDenied = 40,
  kErrorIncompatibleRegisterVersion = 41,
};

/// Ids are structures of one number in the vendor's headers: the same in registers and in memory.
using Id = uint64_t;
struct Handle { // rocprofiler_context_id_t, ..._buffer_id_t, ..._agent_id_t, ..._callback_thread_t
  Id handle = 0;
};

union UserValue { // rocprofiler_user_data_t
  uint64_t value;
  void *pointer;
};

inline constexpr uint32_t kCategoryTracing = 1; // ROCPROFILER_BUFFER_CATEGORY_TRACING

enum Phase : int { kPhaseNone = 0, kEnter = 1, kExit = 2, kLoad = kEnter, kUnload = kExit };

enum CallbackKind : int { // rocprofiler_callback_tracing_kind_t
  kCallbackHipRuntimeApi = 5,
  kCallbackMarkerCoreApi = 7,
  kCallbackCodeObject = 10,
};

enum BufferKind : int { // rocprofiler_buffer_tracing_kind_t
  kBufferMemoryCopy = 10,
  kBufferKernelDispatch = 11,
};

enum BufferPolicy : int { kPolicyDiscard = 1, kPolicyLossless = 2 };

enum CorrelationRequestKind : int { // rocprofiler_external_correlation_id_request_kind_t
  kRequestMemoryCopy = 10,
  kRequestKernelDispatch = 11,
};

enum CodeObjectOperation : int {
  kKernelSymbolRegister = 2,
};
enum HipStreamOperation : int { kStreamCreate = 1, kStreamDestroy = 2, kStreamSet = 3 };
enum DispatchOperation : int { kDispatchEnqueue = 1, kDispatchComplete = 2 };
enum CopyOperation : int {
  kCopyHostToHost = 1,
  kCopyHostToDevice = 2,
  kCopyDeviceToHost = 3,
  kCopyDeviceToDevice = 4,
};
enum AgentType : int { kAgentCpu = 1, kAgentGpu = 2 };
inline constexpr int kAgentVersion0 = 1; // ROCPROFILER_AGENT_INFO_VERSION_0

struct CorrelationId { // rocprofiler_correlation_id_t, of callbacks
  uint64_t internal;
  UserValue external;
  uint64_t ancestor;
};

struct AsyncCorrelationId { // rocprofiler_async_correlation_id_t, of records
  uint64_t internal;
  UserValue external;
};

/// By value to callbacks.
struct CallbackRecord { // rocprofiler_callback_tracing_record_t
  Handle context;
  uint64_t thread;
  CorrelationId correlation;
  int kind;
  int operation;
  int phase;
  void *payload; ///< by the kind
};

struct RecordHeader { // rocprofiler_record_header_t
  uint32_t category;
  uint32_t kind; ///< BufferKind
  void *payload;
};

// Agents of rocprofiler-sdk (rocprofiler_agent_v0_t), read by offset: CPUs and GPUs, whether or not
// this process may use them. Compared with AMD's headers, where they are found, by a test.

namespace agent_offset {
enum : size_t {
  kSize = 0,                ///< uint64_t
  kId = 8,                  ///< uint64_t, DispatchInfo::agent
  kType = 16,               ///< int, AgentType
  kWaveSize = 64,           ///< uint32_t
  kComputeUnits = 72,       ///< uint32_t
  kGfxVersion = 100,        ///< uint32_t, 10000 * major + 100 * minor + stepping: 90402
  kLocation = 108,          ///< uint32_t, PCI bus << 8 | device << 3 | function
  kPciDomain = 112,         ///< uint32_t
  kMaxClockMhz = 140,       ///< uint32_t, of the GPU
  kGpuId = 192,             ///< uint64_t
  kName = 248,              ///< const char *, e.g. "gfx942"
  kProduct = 264,           ///< const char *, e.g. "AMD Instinct MI300X"
  kNode = 280,              ///< uint32_t, node of the driver
  kLogicalNode = 284,       ///< int32_t
  kLogicalNodeOfType = 288, ///< int32_t: the n-th GPU, before any variable of the environment
  kRuntimeVisibility = 292, ///< uint32_t, RuntimeVisibility
  kUuid = 296,              ///< 16 bytes; the first 8 are the number that ROCr names
};
}
inline constexpr size_t kAgentBytes = 312; ///< the oldest that has all of the above

enum RuntimeVisibility : uint32_t { kVisibleToHsa = 1, kVisibleToHip = 2 };

namespace memory_bank_offset {
enum : size_t { kWidthBits = 8, kMaxClockMhz = 12, kBytes = 16 };
}
inline constexpr size_t kMemoryBankBytes = 24;

template <typename T> T read_agent(const void *agent, size_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char *>(agent) + offset, sizeof value);
  return value;
}

// Records of rocprofiler-sdk and what its callbacks carry (CallbackRecord::payload). Compared with
// AMD's headers, where they are found, by a test (tests/native/driver).

struct DispatchInfo { // rocprofiler_kernel_dispatch_info_t: 128 bytes, for ever
  uint64_t size;
  Id agent;
  Id queue;
  uint64_t kernel;
  uint64_t dispatch;
  uint32_t private_segment_bytes;
  uint32_t group_segment_bytes;
  uint32_t block[3];      ///< work items of a workgroup
  uint32_t work_items[3]; ///< of the whole grid
  uint8_t reserved[56];
};

struct DispatchRecord { // kBufferKernelDispatch
  uint64_t size;
  int kind;
  int operation;
  AsyncCorrelationId correlation;
  uint64_t thread;
  uint64_t start_ns;
  uint64_t end_ns;
  DispatchInfo dispatch;
};

/// kBufferMemoryCopy. Not among the headers of Triton's wheel: from the vendor's own, 1.0 and
/// later.
struct CopyRecord {
  uint64_t size;
  int kind;
  int operation; ///< CopyOperation
  AsyncCorrelationId correlation;
  uint64_t thread;
  uint64_t start_ns;
  uint64_t end_ns;
  Id target_agent;
  Id source_agent;
  uint64_t bytes;
  uint64_t target_address;
  uint64_t source_address;
};

/// kCallbackHipStream. Not among the headers of Triton's wheel, as CopyRecord.
struct HipStreamData {
  uint64_t size;
  Id stream;             ///< the library's own number of the stream; 0 is the null stream
  uint64_t stream_value; ///< hipStream_t
};

struct KernelSymbolData { // kKernelSymbolRegister
  uint64_t size;
  uint64_t kernel; ///< DispatchInfo::kernel
  uint64_t code_object;
  const char *name; ///< "name.kd" or "name"; lives as long as the code object
  uint64_t kernel_object;
  uint32_t kernarg_bytes;
  uint32_t kernarg_alignment;
  uint32_t group_segment_bytes;
  uint32_t private_segment_bytes;
  uint32_t scalar_registers;
  uint32_t vector_registers;
  uint32_t accumulation_registers;
  int64_t entry_offset;
  uint64_t address;
};

struct CodeObjectData { // kCodeObjectLoad
  uint64_t size;
  uint64_t code_object;
  Id agent;
  Id hsa_agent;
  const char *uri;
  uint64_t load_base;
  uint64_t load_bytes;
  int64_t load_delta;
  int storage; ///< 1: a file, 2: memory
  uint64_t memory_base;
  uint64_t memory_bytes;
};

struct MarkerData { // kCallbackMarkerCoreApi
  uint64_t size;
  union {
    const char *message; ///< of mark, push and start
    uint64_t range_id;   ///< of stop
  };
  uint64_t second_argument;
  int64_t answer; ///< on exit; of start the id of the range
};

} // namespace proton::rocprofiler
