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
  kErrorMaxLimitReached = 12,
  kErrorNotReady = 13,
  kErrorNotCompatible = 14,
  kErrorNotInitialized = 15,
  kErrorInvalidKind = 21,
  kErrorHardwareBusy = 26,
  kErrorNotSupported = 27,
  kErrorVirtualizedDevice = 33,
  kErrorInsufficientPrivileges = 35,
  kErrorMultipleSubscribers = 39,
  kErrorVirtualizedPrivileges = 40,
  kErrorConfidentialComputing = 41,
  kErrorMigDevice = 43,
  kErrorWslDevice = 45,
  kErrorInvalidChipName = 46,
  kErrorUnknown = 999,
};

/// cuptiGetVersion: small integers up to 12.x, MMmmpp from 13.0 on.
enum Version : uint32_t {
  kVersion12_4 = 22,
  kVersion13_3 = 130300,
  kVersion13_5 = 130500,
};

enum Domain : int { // CUpti_CallbackDomain
  kDomainDriver = 1,
  kDomainRuntime = 2,
  kDomainResource = 3,
  kDomainNvtx = 5,
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
  kCuGraphLaunch = 514,
  kCuGraphLaunchPtsz = 515,
  kCuGraphExecDestroy = 516,
  kCuGraphDestroy = 517,
  kCuGraphClone = 523,
  kCuGraphAddChildGraphNode = 525,
  kCuStreamBeginCaptureV2 = 539,
  kCuStreamBeginCaptureV2Ptsz = 540,
  kCuGraphExecUpdate = 561,
  kCuGraphInstantiateV2 = 578,
  kCuGraphInstantiateWithFlags = 643,
  kCuLaunchKernelEx = 652,
  kCuLaunchKernelExPtsz = 653,
  kCuGraphInstantiateWithParams = 656,
  kCuGraphInstantiateWithParamsPtsz = 657,
  kCuGraphExecUpdateV2 = 696,
  kCuStreamBeginCaptureToGraph = 720,
  kCuStreamBeginCaptureToGraphPtsz = 721,
};

enum ResourceCbid : uint32_t {
  kContextCreated = 1,
  kContextDestroyStarting = 2,
  kStreamCreated = 3,
  kStreamDestroyStarting = 4,
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

/// Launches of one kernel.
inline constexpr uint32_t kLaunchCalls[] = {kCuLaunch,
                                            kCuLaunchGrid,
                                            kCuLaunchGridAsync,
                                            kCuLaunchKernel,
                                            kCuLaunchKernelPtsz,
                                            kCuLaunchKernelEx,
                                            kCuLaunchKernelExPtsz,
                                            kCuLaunchCooperativeKernel,
                                            kCuLaunchCooperativeKernelPtsz,
                                            kCuLaunchCooperativeKernelMultiDevice};

// Callback ids of the driver calls that copy or set memory, whose correlation ids copy and set
// records name. Calls of the 32-bit API before CUDA 3.2 are left out.

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

// Callback ids of the driver calls that make or end contexts and modules, or look a kernel up,
// which may load its module.

inline constexpr uint32_t kModuleCalls[] = {10,  11,  235, 322, 386, 387,
                                            389, 544, 545, 645, 757,       // contexts
                                            18,  19,  20,  21,  22,  23,   // modules
                                            678, 679, 680, 681, 682, 683}; // libraries

// Driver calls that take memory from the device or pinned memory from the host, and give it back:
// slow, and those that give back wait for the device. Calls of pools that are stream-ordered are
// left out.

struct MemoryCall {
  uint32_t cbid;
  const char *name;
};
inline constexpr MemoryCall kMemoryCalls[] = {
    {243, "cuMemAlloc"},    {244, "cuMemAllocPitch"},   {371, "cuMemAllocManaged"},
    {245, "cuMemFree"},     {549, "cuMemCreate"},       {550, "cuMemRelease"},
    {551, "cuMemMap"},      {552, "cuMemUnmap"},        {553, "cuMemSetAccess"},
    {39, "cuMemHostAlloc"}, {271, "cuMemHostAlloc"},    {294, "cuMemAllocHost"},
    {38, "cuMemFreeHost"},  {379, "cuMemHostRegister"}, {302, "cuMemHostUnregister"}};

// NVTX calls as CUPTI reports them: their numbers, parameters and texts.

enum NvtxCbid : uint32_t {
  kNvtxRangePushA = 8,
  kNvtxRangePushW = 9,
  kNvtxRangePushEx = 10,
  kNvtxRangePop = 11,
  kNvtxDomainRangePushEx = 33,
  kNvtxDomainRangePop = 34,
  kNvtxDomainRegisterStringA = 39,
  kNvtxDomainRegisterStringW = 40,
};

struct NvtxData { // domain NVTX
  const char *function_name;
  const void *function_params;
  const void *return_value;
};

struct NvtxRangePushAParams {
  const char *message;
};
struct NvtxRangePushWParams {
  const wchar_t *message;
};
struct NvtxEventAttributes; // read by nvtx_event_offset
struct NvtxRangePushExParams {
  const NvtxEventAttributes *attributes;
};
/// Ranges of a domain: functions of NVTX 3 that name the domain before the usual parameters.
struct NvtxDomainRangePushExParams {
  void *domain;
  struct Core {
    const NvtxEventAttributes *attributes;
  } core;
};
struct NvtxDomainRangePopParams {
  void *domain;
};
/// Both kinds of text; the header of CUPTI says `char` for the wide one too.
struct NvtxDomainRegisterStringParams {
  void *domain;
  const void *text;
};
namespace nvtx_event_offset {
enum : size_t { kVersion = 0, kSize = 2, kMessageType = 32, kMessage = 40, kBytes = 48 };
}
enum NvtxMessageType : int32_t {
  kNvtxMessageAscii = 1,
  kNvtxMessageUnicode = 2,
  kNvtxMessageRegistered = 3,
};

} // namespace proton::cupti
