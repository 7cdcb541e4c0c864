// Our own description of the part of libcupti's ABI that is used here: result codes, callbacks and
// entry points. NVIDIA's headers are not needed to build; where they are found, a test compares
// every number below with them (tests/native/driver).
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/cupti/cupti_records.h"

namespace proton::cupti {

using Result = int; // CUptiResult
enum ResultCode : int {
  kSuccess = 0,
  kErrorInvalidParameter = 1,
  kErrorInvalidDevice = 2,
  kErrorInvalidContext = 3,
  kErrorInvalidOperation = 7,
  kErrorOutOfMemory = 8,
  kErrorParameterSizeNotSufficient = 10,
  kErrorApiNotImplemented = 11,
  kErrorMaxLimitReached = 12,
  kErrorNotReady = 13,
  kErrorNotCompatible = 14,
  kErrorNotInitialized = 15,
  kErrorInvalidMetricName = 17,
  kErrorQueueEmpty = 18,
  kErrorInvalidKind = 21,
  kErrorInvalidModule = 24,
  kErrorHardwareBusy = 26,
  kErrorNotSupported = 27,
  kErrorVirtualizedDevice = 33,
  kErrorInsufficientPrivileges = 35,
  kErrorMultipleSubscribers = 39,
  kErrorVirtualizedPrivileges = 40,
  kErrorConfidentialComputing = 41,
  kErrorCmpDevice = 42,
  kErrorMigDevice = 43,
  kErrorWslDevice = 45,
  kErrorInvalidChipName = 46,
  kErrorUnknown = 999,
};

/// cuptiGetVersion: small integers up to 12.x, MMmmpp from 13.0 on.
enum Version : uint32_t {
  kVersion12_4 = 22,
  kVersion12_8 = 26,
  kVersion13_0 = 130000,
  kVersion13_5 = 130500,
};

enum Domain : int { // CUpti_CallbackDomain
  kDomainDriver = 1,
  kDomainRuntime = 2,
  kDomainResource = 3,
  kDomainSynchronize = 4,
  kDomainNvtx = 5,
  kDomainState = 6,
};

enum Site : int { kEnter = 0, kExit = 1 }; // CUpti_ApiCallbackSite

enum DriverCbid : uint32_t {
  kCuLaunch = 115,
  kCuLaunchGrid = 116,
  kCuLaunchGridAsync = 117,
  kCuLaunchKernel = 307,
  kCuLaunchKernelPtsz = 442,
  kCuLaunchCooperativeKernel = 477,
  kCuLaunchCooperativeKernelPtsz = 478,
  kCuLaunchCooperativeKernelMultiDevice = 480,
  kCuStreamBeginCapture = 495,
  kCuStreamBeginCapturePtsz = 496,
  kCuStreamEndCapture = 497,
  kCuStreamEndCapturePtsz = 498,
  kCuGraphInstantiate = 513,
  kCuGraphLaunch = 514,
  kCuGraphLaunchPtsz = 515,
  kCuGraphExecDestroy = 516,
  kCuGraphDestroy = 517,
  kCuGraphClone = 523,
  kCuGraphAddChildGraphNode = 525,
  kCuGraphExecKernelNodeSetParams = 538,
  kCuStreamBeginCaptureV2 = 539,
  kCuStreamBeginCaptureV2Ptsz = 540,
  kCuGraphExecUpdate = 561,
  kCuGraphInstantiateV2 = 578,
  kCuGraphUpload = 580,
  kCuGraphExecChildGraphNodeSetParams = 586,
  kCuGraphInstantiateWithFlags = 643,
  kCuLaunchKernelEx = 652,
  kCuLaunchKernelExPtsz = 653,
  kCuGraphInstantiateWithParams = 656,
  kCuGraphInstantiateWithParamsPtsz = 657,
  kCuGraphExecKernelNodeSetParamsV2 = 692,
  kCuGraphExecUpdateV2 = 696,
  kCuStreamBeginCaptureToGraph = 720,
  kCuStreamBeginCaptureToGraphPtsz = 721,
};

enum ResourceCbid : uint32_t {
  kContextCreated = 1,
  kContextDestroyStarting = 2,
  kStreamCreated = 3,
  kStreamDestroyStarting = 4,
  kCuInitFinished = 5,
  kModuleLoaded = 6,
  kModuleUnloadStarting = 7,
  kModuleProfiled = 8,
  kGraphCreated = 9,
  kGraphDestroyStarting = 10,
  kGraphCloned = 11,
  kGraphNodeCreateStarting = 12,
  kGraphNodeCreated = 13,
  kGraphNodeDestroyStarting = 14,
  kGraphNodeDependencyCreated = 15,
  kGraphExecCreateStarting = 17,
  kGraphExecCreated = 18,
  kGraphExecDestroyStarting = 19,
  kGraphNodeCloned = 20,
  kGraphNodeUpdated = 22,   ///< from 13.0
  kGraphNodeSetParams = 23, ///< from 13.0
};

struct CallbackData { // domains driver and runtime
  Site site;
  const char *function_name;
  const void *function_params; ///< see driver/cuda/cuda_abi.h
  void *function_return;       ///< of the driver: int (CUresult), valid on exit
  const char *symbol_name;     ///< of a kernel launch, else null
  void *context;
  uint32_t context_uid;
  uint64_t *correlation_data; ///< 8 bytes of ours, kept from enter to exit
  uint32_t correlation_id;
};

struct ResourceData { // domain resource
  void *context;
  void *handle; ///< CUstream for streams
  void *descriptor;
};

struct ModuleResourceData { // descriptor of kModule...
  uint32_t module_id;
  size_t cubin_size;
  const char *cubin;
};

struct GraphData { // descriptor of kGraph...
  void *graph;
  void *original_graph;
  void *node;
  void *original_node;
  int node_type; ///< cuda::GraphNodeType
  void *dependency;
  void *graph_exec;
};

} // namespace proton::cupti
