// Our own description of the part of libcuda's ABI that a profiler needs: entry points, attributes
// and the parameters that libcupti hands to callbacks. Compared with NVIDIA's headers, where they
// are found, by a test (tests/native/driver).
#pragma once

#include <cstddef>
#include <cstdint>

namespace proton::cuda {

using Result = int; // CUresult
enum CaptureMode : int { kCaptureModeRelaxed = 2 };
enum StreamFlags : unsigned { kStreamNonBlocking = 1 };
enum EventFlags : unsigned { kEventDisableTiming = 2 };
enum HostAllocFlags : unsigned { kHostAllocPortable = 1, kHostAllocDeviceMap = 2 };
enum ResultCode : int {
  kSuccess = 0,
  kErrorInvalidValue = 1,
  kErrorOutOfMemory = 2,
  kErrorNotInitialized = 3,
  kErrorDeinitialized = 4,
  kErrorNoDevice = 100,
  kErrorInvalidDevice = 101,
  kErrorInvalidContext = 201,
  kErrorNotFound = 500,
  kErrorNotReady = 600,
  kErrorStreamCaptureUnsupported = 900,
  kErrorStreamCaptureImplicit = 906,
};

using DevicePointer = unsigned long long; // CUdeviceptr
using Device = int; // CUdevice; contexts, streams, graphs, nodes and functions are void *

enum DeviceAttribute : int {
  kAttributeWarpSize = 10,
  kAttributeClockRateKhz = 13,
  kAttributeMultiprocessors = 16,
  kAttributeMemoryClockRateKhz = 36,
  kAttributeMemoryBusWidthBits = 37,
  kAttributeL2Bytes = 38,
  kAttributeCapabilityMajor = 75,
  kAttributeCapabilityMinor = 76,
};

enum FunctionAttribute : int { kFunctionSharedBytes = 1, kFunctionRegisters = 4 };

enum StreamCaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };

enum GraphNodeType : int {
  kNodeKernel = 0,
  kNodeMemcpy = 1,
  kNodeMemset = 2,
  kNodeHost = 3,
  kNodeGraph = 4, ///< child graph
  kNodeEmpty = 5,
  kNodeWaitEvent = 6,
  kNodeEventRecord = 7,
  kNodeMemAlloc = 10,
  kNodeMemFree = 11,
};

// CallbackData::function_params of the driver calls that matter.
struct LaunchKernelParams { // cuLaunchKernel, _ptsz; cuLaunchCooperativeKernel has no `extra`
  void *function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void *stream;
  void **kernel_params;
  void **extra;
};

struct LaunchConfig { // CUlaunchConfig
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void *stream;
  void *attributes;
  unsigned attribute_count;
};

struct LaunchKernelExParams { // cuLaunchKernelEx, _ptsz
  const LaunchConfig *config;
  void *function;
  void **kernel_params;
  void **extra;
};

struct GraphLaunchParams { // cuGraphLaunch, _ptsz
  void *graph_exec;
  void *stream;
};

/// Handle of the default stream that each thread has for itself. In functions whose names end in
/// _ptsz null means that stream, too.
inline constexpr uintptr_t kStreamPerThread = 2;

struct StreamBeginCaptureParams { // cuStreamBeginCapture, _v2, ToGraph: the stream comes first
  void *stream;
};

struct StreamBeginCaptureToGraphParams {
  void *stream;
  void *graph;
};

struct StreamEndCaptureParams {
  void *stream;
  void **graph; ///< written on exit
};

struct GraphInstantiateParams { // cuGraphInstantiate, _v2, WithFlags, WithParams
  void **graph_exec;            ///< written on exit
  void *graph;
};

struct GraphExecUpdateParams { // cuGraphExecUpdate, _v2
  void *graph_exec;
  void *graph;
};

struct GraphCloneParams {
  void **clone; ///< written on exit
  void *original;
};

struct GraphAddChildNodeParams {
  void **node; ///< written on exit
  void *graph;
  void *const *dependencies;
  size_t dependency_count;
  void *child;
};

struct GraphExecKernelNodeSetParamsParams {
  void *graph_exec;
  void *node;
};

namespace function {
using Init = Result (*)(unsigned flags);
using DriverGetVersion = Result (*)(int *version); ///< 1000 * major + 10 * minor
using GetErrorString = Result (*)(Result result, const char **text);
using GetErrorName = Result (*)(Result result, const char **text);
using DeviceGetCount = Result (*)(int *count);
using DeviceGet = Result (*)(Device *device, int ordinal);
using DeviceGetName = Result (*)(char *name, int bytes, Device device);
using DeviceGetUuid = Result (*)(unsigned char uuid[16], Device device);
using DeviceGetAttribute = Result (*)(int *value, int attribute, Device device);
using DevicePrimaryCtxGetState = Result (*)(Device device, unsigned *flags, int *is_active);
using DevicePrimaryCtxRetain = Result (*)(void **context, Device device);
using DevicePrimaryCtxRelease = Result (*)(Device device); ///< cuDevicePrimaryCtxRelease_v2
using CtxGetCurrent = Result (*)(void **context);
using CtxSetCurrent = Result (*)(void *context);
using CtxPushCurrent = Result (*)(void *context); ///< cuCtxPushCurrent_v2
using CtxPopCurrent = Result (*)(void **context); ///< cuCtxPopCurrent_v2
using CtxGetDevice = Result (*)(Device *device);
using CtxSynchronize = Result (*)();
using MemHostAlloc = Result (*)(void **memory, size_t bytes, unsigned flags);
using ThreadExchangeStreamCaptureMode = Result (*)(int *mode);
using StreamIsCapturing = Result (*)(void *stream, int *status);
using StreamGetId = Result (*)(void *stream, unsigned long long *id); ///< from 12.0
/// cuStreamGetCaptureInfo_v2, from 11.3; all but the status may be null.
using StreamGetCaptureInfo = Result (*)(void *stream, int *status, unsigned long long *id,
                                        void **graph, const void **dependencies, size_t *count);
using StreamCreate = Result (*)(void **stream, unsigned flags);
using StreamDestroy = Result (*)(void *stream); ///< cuStreamDestroy_v2
using StreamSynchronize = Result (*)(void *stream);
using StreamWaitEvent = Result (*)(void *stream, void *event, unsigned flags);
using EventCreate = Result (*)(void **event, unsigned flags);
using EventDestroy = Result (*)(void *event); ///< cuEventDestroy_v2
using EventRecord = Result (*)(void *event, void *stream);
using EventQuery = Result (*)(void *event); ///< kErrorNotReady while it is not over
using EventSynchronize = Result (*)(void *event);
using ModuleLoadData = Result (*)(void **module, const void *image);
using ModuleUnload = Result (*)(void *module);
using ModuleGetFunction = Result (*)(void **function, void *module, const char *name);
using LaunchKernel = Result (*)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z,
                                unsigned shared_bytes, void *stream, void **parameters,
                                void **extra);
using MemAlloc = Result (*)(DevicePointer *memory, size_t bytes); ///< cuMemAlloc_v2
using MemFree = Result (*)(DevicePointer memory);                 ///< cuMemFree_v2
using MemFreeHost = Result (*)(void *memory);
using MemsetD8Async = Result (*)(DevicePointer memory, unsigned char value, size_t bytes,
                                 void *stream);
/// cuMemcpyDtoHAsync_v2
using MemcpyDtoHAsync = Result (*)(void *to, DevicePointer from, size_t bytes, void *stream);
using GraphNodeGetType = Result (*)(void *node, int *type);
} // namespace function

} // namespace proton::cuda
