// HIP calls as roctracer hands them to callbacks (kDomainHipApi): their numbers and parameters.
// Compared with AMD's headers, where they are found, by a test (tests/native/driver).
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/hip/hip_abi.h"
#include "driver/hip/hip_call_table.h"

namespace proton::roctracer {

using namespace hip_params;

#define PROTON_HIP_NUMBER(name, form, sdk, tracer) kHip##name = tracer,
enum HipApiId : uint32_t { // hip_api_id_t
  PROTON_HIP_CALLS(PROTON_HIP_NUMBER)
};
#undef PROTON_HIP_NUMBER

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

struct GraphInstantiateParams { // also WithFlags, WithParams
  void **graph_exec;            ///< written on exit
  void *graph_exec_value;
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

struct LaunchKernelExParams { // hipLaunchKernelExC
  const void *config;
  hip::LaunchConfig config_value;
  const void *host_function;
};

struct DrvLaunchKernelExParams { // hipDrvLaunchKernelEx
  const void *config;
  hip::DriverLaunchConfig config_value;
  const void *function;
};

} // namespace proton::roctracer
