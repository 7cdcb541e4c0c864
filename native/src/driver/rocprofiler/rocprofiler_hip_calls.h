// HIP calls as rocprofiler-sdk hands them to callbacks (kCallbackHipRuntimeApi): their numbers and
// parameters. Compared with AMD's headers, where they are found, by a test (tests/native/driver).
#pragma once

#include <cstddef>

#include "driver/hip/hip_abi.h"
#include "driver/hip/hip_call_table.h"

namespace proton::rocprofiler {

using namespace hip_params;

#define PROTON_HIP_NUMBER(name, form, sdk, ...) kHip##name = sdk,
enum HipCall : int { // rocprofiler_hip_runtime_api_id_t
  PROTON_HIP_CALLS(PROTON_HIP_NUMBER) PROTON_HIP_SDK_CALLS(PROTON_HIP_NUMBER)
};
#undef PROTON_HIP_NUMBER

/// The parameters of these are those of the calls without "Spt".
#define PROTON_HIP_NUMBER(name, form, sdk) kHip##name##Spt = sdk,
enum HipThreadCall : int { PROTON_HIP_THREAD_CALLS(PROTON_HIP_NUMBER) };
#undef PROTON_HIP_NUMBER
inline constexpr int kFirstHipThreadCall = kHipMemcpySpt;
inline constexpr int kLastHipThreadCall = kHipStreamEndCaptureSpt;

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

struct LaunchKernelExParams { // hipLaunchKernelExC
  const void *config;         ///< hip::LaunchConfig
  const void *host_function;
};

struct DrvLaunchKernelExParams { // hipDrvLaunchKernelEx
  const void *config;            ///< hip::DriverLaunchConfig
  void *function;
};

struct GraphInstantiateParams { // also WithFlags, WithParams
  void **graph_exec;            ///< written on exit
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

} // namespace proton::rocprofiler
