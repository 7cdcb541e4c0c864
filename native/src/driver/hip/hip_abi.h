// Our own description of the part of HIP's ABI that a profiler of AMD GPUs needs: results, device
// facts, captures, graphs and entry points. AMD's headers are not needed to build; where they are
// found, a test compares every number below with them (tests/native/driver).
#pragma once

#include <cstddef>
#include <cstdint>

namespace proton::hip {

using Result = int; // hipError_t
enum ResultCode : int {
  kSuccess = 0,
  kErrorInvalidValue = 1,
  kErrorOutOfMemory = 2,
  kErrorNotInitialized = 3,
  kErrorDeinitialized = 4,
  kErrorNoDevice = 100,
  kErrorInvalidDevice = 101,
  kErrorNotFound = 500,
  kErrorNotReady = 600,
  kErrorStreamCaptureUnsupported = 900,
  kErrorStreamCaptureImplicit = 906,
};

/// Streams, graphs, executable graphs, nodes and functions are void *; devices are ordinals.
inline constexpr uintptr_t kStreamPerThread = 2;

enum CaptureMode : int { kCaptureModeRelaxed = 2 };
enum StreamCaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };
enum HostAllocFlags : unsigned { kHostAllocPortable = 1, kHostAllocDeviceMap = 2 };

enum DeviceAttribute : int { // hipDeviceAttribute_t
  kAttributeClockRateKhz = 5,
  kAttributeL2Bytes = 19,
  kAttributeCapabilityMajor = 23,
  kAttributeMemoryBusWidthBits = 59,
  kAttributeMemoryClockRateKhz = 60,
  kAttributeMultiprocessors = 63,
  kAttributeWarpSize = 87,
};

enum CopyKind : int { // hipMemcpyKind
  kCopyHostToHost = 0,
  kCopyHostToDevice = 1,
  kCopyDeviceToHost = 2,
  kCopyDeviceToDevice = 3,
};

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

/// What hipGetDevicePropertiesR0600 (ROCm 6 and later) writes, read by offset. The entry point
/// without a suffix writes an older structure in which these places mean something else.
namespace properties_offset {
enum : size_t {
  kName = 0,    ///< char[256]
  kUuid = 256,  ///< 16 bytes: the text of ROCr without "GPU-"
  kArch = 1160, ///< char[256], e.g. "gfx942:sramecc+:xnack-"
};
}
inline constexpr size_t kPropertiesBytes = 1472;
inline constexpr size_t kPropertiesTextBytes = 256;

struct LaunchConfig { // hipLaunchConfig_t
  unsigned grid[3];
  unsigned block[3];
  size_t shared_bytes;
  void *stream;
  void *attributes;
  unsigned attribute_count;
};

struct MultiLaunch {    // hipLaunchParams: one of the list of a launch on several devices
  const void *function; ///< the host's
  unsigned grid[3];
  unsigned block[3];
  void **arguments;
  size_t shared_bytes;
  void *stream;
};

struct ModuleMultiLaunch { // hipFunctionLaunchParams
  void *function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void *stream;
  void **kernel_params;
};

struct DriverLaunchConfig { // HIP_LAUNCH_CONFIG
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void *stream;
  void *attributes;
  unsigned attribute_count;
};

struct KernelNodeParams { // hipKernelNodeParams
  unsigned block[3];
  void **extra;
  void *function;
  unsigned grid[3];
  void **kernel_params;
  unsigned shared_bytes;
};

namespace function {
using Init = Result (*)(unsigned flags);
using RuntimeGetVersion = Result (*)(int *version); ///< 10000000 * major + 100000 * minor + patch
using DriverGetVersion = Result (*)(int *version);
using GetErrorName = const char *(*)(Result result);
using GetErrorString = const char *(*)(Result result);
using GetDeviceCount = Result (*)(int *count);
using GetDevice = Result (*)(int *device);
using SetDevice = Result (*)(int device);
using DeviceGetName = Result (*)(char *name, int bytes, int device);
using DeviceGetUuid = Result (*)(unsigned char uuid[16], int device);
using DeviceGetPciBusId = Result (*)(char *text, int bytes, int device);
using DeviceGetAttribute = Result (*)(int *value, int attribute, int device);
using GetDeviceProperties = Result (*)(void *properties, int device); ///< ...R0600
using DeviceSynchronize = Result (*)();
using StreamSynchronize = Result (*)(void *stream);
using StreamIsCapturing = Result (*)(void *stream, int *status);
/// hipStreamGetCaptureInfo_v2; all but the status may be null.
using StreamGetCaptureInfo = Result (*)(void *stream, int *status, unsigned long long *id,
                                        void **graph, void *const **dependencies, size_t *count);
using ThreadExchangeStreamCaptureMode = Result (*)(int *mode);
using GraphGetNodes = Result (*)(void *graph, void **nodes, size_t *count);
using GraphNodeGetType = Result (*)(void *node, int *type);
/// Name of a kernel; lives as long as its module. Null where it is not known.
using KernelNameRef = const char *(*)(void *function);
using KernelNameRefByPtr = const char *(*)(const void *host_function, void *stream);
} // namespace function

} // namespace proton::hip

// Parameters of HIP calls that lie in the same places in rocprofiler-sdk and in roctracer. Compared
// with AMD's headers, where they are found, by a test (tests/native/driver).

namespace proton::hip_params {

struct ModuleLaunchParams { // hipModuleLaunchKernel, hipModuleLaunchCooperativeKernel
  void *function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void *stream;
};

struct ExtModuleLaunchParams { // hipExtModuleLaunchKernel, hipHccModuleLaunchKernel
  void *function;
  unsigned work_items[3]; ///< of the whole grid
  unsigned block[3];
  size_t shared_bytes;
  void *stream;
};

struct GraphLaunchParams {
  void *graph_exec;
  void *stream;
};

struct StreamBeginCaptureParams {
  void *stream;
  void *graph; ///< of ToGraph alone
};

struct StreamEndCaptureParams {
  void *stream;
  void **graph; ///< written on exit
};

struct GraphParams { // hipGraphDestroy, hipGraphExecDestroy
  void *graph;
};

struct GraphExecUpdateParams {
  void *graph_exec;
  void *graph;
};

struct CopyAsyncParams { // hipMemcpyAsync, hipMemcpyWithStream
  void *target;
  const void *source;
  size_t bytes;
  int kind; ///< hip::CopyKind
  void *stream;
};

struct SetAsyncParams { // hipMemsetAsync
  void *target;
  int value;
  size_t bytes;
  void *stream;
};

} // namespace proton::hip_params
