// Our own description of the part of rocprofiler-sdk's ABI (librocprofiler-sdk, 1.0 and later) that
// is used here: status codes, kinds and what callbacks and buffers are called with. AMD's headers
// are not needed to build; where they are found, a test compares with them what they have
// (tests/native/driver).
//
// Structures of the library begin with their size and only ever grow at the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace proton::rocprofiler {

using Status = int; // rocprofiler_status_t
enum StatusCode : int {
  kSuccess = 0,
  kError = 1,
  kErrorContextNotFound = 2,
  kErrorBufferNotFound = 3,
  kErrorKindNotFound = 4,
  kErrorOperationNotFound = 5,
  kErrorContextError = 9,
  kErrorContextInvalid = 10,
  kErrorContextNotStarted = 11,
  kErrorContextConflict = 12,
  kErrorBufferBusy = 14,
  kErrorServiceAlreadyConfigured = 15,
  kErrorConfigurationLocked = 16, ///< asked for after the configuration: too late
  kErrorNotImplemented = 17,
  kErrorIncompatibleAbi = 18,
  kErrorInvalidArgument = 19,
  kErrorFinalized = 21,
  kErrorHsaNotLoaded = 22,
  kErrorIncompatibleKernel = 28, ///< the amdgpu driver is too old
  kErrorOutOfResources = 29,
  kErrorNotAvailable = 37,
  kErrorAgentArchNotSupported = 39,
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
  kCallbackKernelDispatch = 12,
  kCallbackMemoryCopy = 13,
  kCallbackRuntimeInitialization = 17,
  kCallbackHipStream = 20,
  kCallbackMarkerCoreRangeApi = 21,
};

enum BufferKind : int { // rocprofiler_buffer_tracing_kind_t
  kBufferMemoryCopy = 10,
  kBufferKernelDispatch = 11,
  kBufferCorrelationIdRetirement = 13,
};

enum BufferPolicy : int { kPolicyDiscard = 1, kPolicyLossless = 2 };

enum CorrelationRequestKind : int { // rocprofiler_external_correlation_id_request_kind_t
  kRequestHipRuntimeApi = 5,
  kRequestMemoryCopy = 10,
  kRequestKernelDispatch = 11,
};

enum CodeObjectOperation : int {
  kCodeObjectLoad = 1,
  kKernelSymbolRegister = 2,
  kHostKernelSymbolRegister = 3,
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

} // namespace proton::rocprofiler
