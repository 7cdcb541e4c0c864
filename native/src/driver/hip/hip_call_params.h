// Parameters of HIP calls that lie in the same places in rocprofiler-sdk and in roctracer. Compared
// with AMD's headers, where they are found, by a test (tests/native/driver).
#pragma once

#include <cstddef>

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
