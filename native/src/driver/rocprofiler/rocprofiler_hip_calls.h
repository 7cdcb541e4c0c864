// HIP calls as rocprofiler-sdk hands them to callbacks (kCallbackHipRuntimeApi): their numbers and
// parameters. Compared with AMD's headers, where they are found, by a test (tests/native/driver).
#pragma once

#include <cstddef>
#include <cstdint>

namespace proton::rocprofiler {

enum HipCall : int { // rocprofiler_hip_runtime_api_id_t; only ever added to
  kHipExtLaunchKernel = 84,
  kHipExtLaunchMultiKernelMultiDevice = 85,
  kHipGraphAddChildGraphNode = 118,
  kHipGraphAddKernelNode = 124,
  kHipGraphClone = 133,
  kHipGraphDestroy = 136,
  kHipGraphExecDestroy = 143,
  kHipGraphExecKernelNodeSetParams = 147,
  kHipGraphExecUpdate = 153,
  kHipGraphInstantiate = 159,
  kHipGraphInstantiateWithFlags = 160,
  kHipGraphLaunch = 166,
  kHipLaunchByPtr = 210,
  kHipLaunchCooperativeKernel = 211,
  kHipLaunchCooperativeKernelMultiDevice = 212,
  kHipLaunchKernel = 214,
  kHipMemcpy = 259,
  kHipMemcpy2D = 260,
  kHipMemcpy2DAsync = 261,
  kHipMemcpy3D = 266,
  kHipMemcpy3DAsync = 267,
  kHipMemcpyAsync = 268,
  kHipMemcpyDtoD = 270,
  kHipMemcpyDtoDAsync = 271,
  kHipMemcpyDtoH = 272,
  kHipMemcpyDtoHAsync = 273,
  kHipMemcpyHtoD = 278,
  kHipMemcpyHtoDAsync = 279,
  kHipMemcpyParam2D = 280,
  kHipMemcpyParam2DAsync = 281,
  kHipMemcpyPeer = 282,
  kHipMemcpyPeerAsync = 283,
  kHipMemcpyWithStream = 287,
  kHipMemset = 288,
  kHipMemset2D = 289,
  kHipMemset2DAsync = 290,
  kHipMemset3D = 291,
  kHipMemset3DAsync = 292,
  kHipMemsetAsync = 293,
  kHipMemsetD16 = 294,
  kHipMemsetD16Async = 295,
  kHipMemsetD32 = 296,
  kHipMemsetD32Async = 297,
  kHipMemsetD8 = 298,
  kHipMemsetD8Async = 299,
  kHipModuleLaunchCooperativeKernel = 306,
  kHipModuleLaunchCooperativeKernelMultiDevice = 307,
  kHipModuleLaunchKernel = 308,
  kHipStreamBeginCapture = 333,
  kHipStreamEndCapture = 338,
  kHipExtModuleLaunchKernel = 388,
  kHipHccModuleLaunchKernel = 389,
  kHipGraphInstantiateWithParams = 438,
  kHipStreamBeginCaptureToGraph = 443,
  kHipLaunchKernelExC = 474,
  kHipDrvLaunchKernelEx = 475,
};

/// CallbackRecord::payload: a size, then the parameters, then what the call answered.
inline constexpr size_t kHipParameters = 8;
inline constexpr size_t kHipParametersBytes = 88;

struct LaunchKernelParams { // hipLaunchKernel, hipExtLaunchKernel
  const void *host_function;
  unsigned grid[3];
  unsigned block[3];
  void **arguments;
  size_t shared_bytes;
  void *stream;
};

struct CooperativeLaunchParams { // hipLaunchCooperativeKernel
  const void *host_function;
  unsigned grid[3];
  unsigned block[3];
  void **arguments;
  unsigned shared_bytes;
  void *stream;
};

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

struct MultiLaunchParams { // hip...MultiDevice
  const void *launches;    ///< list of hip::MultiLaunch, of modules hip::ModuleMultiLaunch
  unsigned count;
};

struct LaunchKernelExParams { // hipLaunchKernelExC
  const void *config;         ///< hip::LaunchConfig
  const void *host_function;
};

struct DrvLaunchKernelExParams { // hipDrvLaunchKernelEx
  const void *config;            ///< hip::DriverLaunchConfig
  void *function;
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

struct GraphInstantiateParams { // also WithFlags, WithParams
  void **graph_exec;            ///< written on exit
  void *graph;
};

struct GraphParams { // hipGraphDestroy, hipGraphExecDestroy
  void *graph;
};

struct GraphExecUpdateParams {
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

struct GraphAddKernelNodeParams {
  void **node; ///< written on exit
  void *graph;
  void *const *dependencies;
  size_t dependency_count;
  const void *parameters; ///< hip::KernelNodeParams
};

struct GraphExecKernelNodeSetParamsParams {
  void *graph_exec;
  void *node;
  const void *parameters; ///< hip::KernelNodeParams
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

} // namespace proton::rocprofiler
