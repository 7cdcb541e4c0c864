// HIP calls as roctracer hands them to callbacks (kDomainHipApi): their numbers and parameters.
// Compared with AMD's headers, where they are found, by a test (tests/native/driver).
#pragma once

#include <cstddef>
#include <cstdint>

namespace proton::roctracer {

enum HipApiId : uint32_t { // hip_api_id_t; only ever added to
  kHipExtLaunchKernel = 62,
  kHipExtLaunchMultiKernelMultiDevice = 63,
  kHipExtModuleLaunchKernel = 65,
  kHipHccModuleLaunchKernel = 88,
  kHipLaunchByPtr = 104,
  kHipLaunchCooperativeKernel = 105,
  kHipLaunchCooperativeKernelMultiDevice = 106,
  kHipLaunchKernel = 107,
  kHipMemcpy = 125,
  kHipMemcpy2D = 126,
  kHipMemcpy2DAsync = 127,
  kHipMemcpy3D = 132,
  kHipMemcpy3DAsync = 133,
  kHipMemcpyAsync = 134,
  kHipMemcpyDtoD = 136,
  kHipMemcpyDtoDAsync = 137,
  kHipMemcpyDtoH = 138,
  kHipMemcpyDtoHAsync = 139,
  kHipMemcpyHtoD = 144,
  kHipMemcpyHtoDAsync = 145,
  kHipMemcpyPeer = 148,
  kHipMemcpyPeerAsync = 149,
  kHipMemcpyWithStream = 153,
  kHipMemset = 154,
  kHipMemset2D = 155,
  kHipMemset2DAsync = 156,
  kHipMemset3D = 157,
  kHipMemset3DAsync = 158,
  kHipMemsetAsync = 159,
  kHipMemsetD16 = 160,
  kHipMemsetD16Async = 161,
  kHipMemsetD32 = 162,
  kHipMemsetD32Async = 163,
  kHipMemsetD8 = 164,
  kHipMemsetD8Async = 165,
  kHipModuleLaunchKernel = 169,
  kHipGraphAddKernelNode = 208,
  kHipGraphDestroy = 212,
  kHipGraphExecDestroy = 213,
  kHipGraphInstantiate = 214,
  kHipGraphLaunch = 215,
  kHipStreamBeginCapture = 219,
  kHipStreamEndCapture = 220,
  kHipGraphExecKernelNodeSetParams = 238,
  kHipGraphAddChildGraphNode = 252,
  kHipGraphClone = 260,
  kHipGraphExecUpdate = 275,
  kHipGraphInstantiateWithFlags = 279,
  kHipModuleLaunchCooperativeKernel = 358,
  kHipModuleLaunchCooperativeKernelMultiDevice = 359,
  kHipGraphInstantiateWithParams = 384,
  kHipStreamBeginCaptureToGraph = 391,
  kHipLaunchKernelExC = 419,
  kHipDrvLaunchKernelEx = 420,
};

/// What callbacks of kDomainHipApi begin with (hip_api_data_t); the parameters follow.
struct HipApiData {
  uint64_t correlation;
  uint32_t phase;
  // 4 bytes of padding, then the parameters of the call
};
inline constexpr size_t kHipParameters = 16; ///< offset of the parameters

// Parameters of calls. After a pointer comes what it points to, filled in by HIP: hence
// `..._value`.
struct LaunchKernelParams { // hipLaunchKernel, hipExtLaunchKernel
  const void *host_function;
  unsigned grid[3];
  unsigned block[3];
  void **arguments;
  void *arguments_value;
  size_t shared_bytes;
  void *stream;
};

struct CooperativeLaunchParams { // hipLaunchCooperativeKernel
  const void *host_function;
  unsigned grid[3];
  unsigned block[3];
  void **arguments;
  void *arguments_value;
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

struct LaunchExParams { // hipLaunchKernelExC, hipDrvLaunchKernelEx
  const void *config;   ///< hip::LaunchConfig, hip::DriverLaunchConfig
};

struct MultiLaunchParams { // hip...MultiDevice
  const void *launches;    ///< list of hip::MultiLaunch, of modules hip::ModuleMultiLaunch
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
  void *graph_exec_value;
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
  void *clone_value;
  void *original;
};

struct GraphAddChildNodeParams {
  void **node; ///< written on exit
  void *node_value;
  void *graph;
  void *const *dependencies;
  void *dependencies_value;
  size_t dependency_count;
  void *child;
};

struct GraphAddKernelNodeParams {
  void **node; ///< written on exit
  void *node_value;
  void *graph;
  void *const *dependencies;
  void *dependencies_value;
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

} // namespace proton::roctracer
