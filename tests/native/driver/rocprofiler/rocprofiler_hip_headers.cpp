// rocprofiler_hip_calls.h says what AMD's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/rocprofiler/rocprofiler_hip_calls.h"

#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/hip/runtime_api_id.h>

#include "driver/vendor_checks.h"

#define CALL(name, ...) SAME(kHip##name, ROCPROFILER_HIP_RUNTIME_API_ID_hip##name);
#define THREAD_CALL(name, ...)                                                                     \
  SAME(kHip##name##Spt, ROCPROFILER_HIP_RUNTIME_API_ID_hip##name##_spt);
#define PARAM(type, field, call, vendor_field)                                                     \
  SAME(offsetof(type, field), offsetof(rocprofiler_hip_api_args_t, call.vendor_field))

using namespace proton::rocprofiler;

PROTON_HIP_CALLS(CALL)
PROTON_HIP_SDK_CALLS(CALL)
PROTON_HIP_THREAD_CALLS(THREAD_CALL)

AT(kHipParameters, rocprofiler_callback_tracing_hip_api_data_t, args);
SAME(kHipParametersBytes, sizeof(rocprofiler_hip_api_args_t));
PARAM(LaunchKernelParams, host_function, hipLaunchKernel, function_address);
PARAM(LaunchKernelParams, grid, hipLaunchKernel, numBlocks);
PARAM(LaunchKernelParams, stream, hipLaunchKernel_spt, stream);
PARAM(CooperativeLaunchParams, stream, hipLaunchCooperativeKernel_spt, stream);
PARAM(GraphLaunchParams, stream, hipGraphLaunch_spt, stream);
PARAM(StreamBeginCaptureParams, stream, hipStreamBeginCapture_spt, stream);
PARAM(StreamEndCaptureParams, graph, hipStreamEndCapture_spt, pGraph);
PARAM(CopyAsyncParams, stream, hipMemcpyAsync_spt, stream);
PARAM(SetAsyncParams, stream, hipMemsetAsync_spt, stream);
PARAM(LaunchKernelParams, block, hipLaunchKernel, dimBlocks);
PARAM(LaunchKernelParams, shared_bytes, hipLaunchKernel, sharedMemBytes);
PARAM(LaunchKernelParams, stream, hipLaunchKernel, stream);
PARAM(LaunchKernelParams, host_function, hipExtLaunchKernel, function_address);
PARAM(LaunchKernelParams, grid, hipExtLaunchKernel, numBlocks);
PARAM(LaunchKernelParams, block, hipExtLaunchKernel, dimBlocks);
PARAM(LaunchKernelParams, shared_bytes, hipExtLaunchKernel, sharedMemBytes);
PARAM(LaunchKernelParams, stream, hipExtLaunchKernel, stream);
PARAM(CooperativeLaunchParams, host_function, hipLaunchCooperativeKernel, func);
PARAM(CooperativeLaunchParams, grid, hipLaunchCooperativeKernel, gridDim);
PARAM(CooperativeLaunchParams, block, hipLaunchCooperativeKernel, blockDimX);
PARAM(CooperativeLaunchParams, shared_bytes, hipLaunchCooperativeKernel, sharedMemBytes);
PARAM(CooperativeLaunchParams, stream, hipLaunchCooperativeKernel, stream);
PARAM(ModuleLaunchParams, function, hipModuleLaunchKernel, func);
PARAM(ModuleLaunchParams, grid, hipModuleLaunchKernel, gridDimX);
PARAM(ModuleLaunchParams, block, hipModuleLaunchKernel, blockDimX);
PARAM(ModuleLaunchParams, shared_bytes, hipModuleLaunchKernel, sharedMemBytes);
PARAM(ModuleLaunchParams, stream, hipModuleLaunchKernel, stream);
PARAM(ModuleLaunchParams, function, hipModuleLaunchCooperativeKernel, func);
PARAM(ModuleLaunchParams, grid, hipModuleLaunchCooperativeKernel, gridDimX);
PARAM(ModuleLaunchParams, block, hipModuleLaunchCooperativeKernel, blockDimX);
PARAM(ModuleLaunchParams, shared_bytes, hipModuleLaunchCooperativeKernel, sharedMemBytes);
PARAM(ModuleLaunchParams, stream, hipModuleLaunchCooperativeKernel, stream);
PARAM(ExtModuleLaunchParams, function, hipExtModuleLaunchKernel, func);
PARAM(ExtModuleLaunchParams, work_items, hipExtModuleLaunchKernel, globalWorkSizeX);
PARAM(ExtModuleLaunchParams, block, hipExtModuleLaunchKernel, localWorkSizeX);
PARAM(ExtModuleLaunchParams, shared_bytes, hipExtModuleLaunchKernel, sharedMemBytes);
PARAM(ExtModuleLaunchParams, stream, hipExtModuleLaunchKernel, stream);
PARAM(ExtModuleLaunchParams, function, hipHccModuleLaunchKernel, func);
PARAM(ExtModuleLaunchParams, work_items, hipHccModuleLaunchKernel, globalWorkSizeX);
PARAM(ExtModuleLaunchParams, block, hipHccModuleLaunchKernel, localWorkSizeX);
PARAM(ExtModuleLaunchParams, stream, hipHccModuleLaunchKernel, stream);
PARAM(LaunchKernelExParams, config, hipLaunchKernelExC, config);
PARAM(DrvLaunchKernelExParams, config, hipDrvLaunchKernelEx, config);
PARAM(GraphLaunchParams, graph_exec, hipGraphLaunch, graphExec);
PARAM(GraphLaunchParams, stream, hipGraphLaunch, stream);
PARAM(StreamBeginCaptureParams, stream, hipStreamBeginCapture, stream);
PARAM(StreamBeginCaptureParams, stream, hipStreamBeginCaptureToGraph, stream);
PARAM(StreamBeginCaptureParams, graph, hipStreamBeginCaptureToGraph, graph);
PARAM(StreamEndCaptureParams, stream, hipStreamEndCapture, stream);
PARAM(StreamEndCaptureParams, graph, hipStreamEndCapture, pGraph);
PARAM(GraphInstantiateParams, graph_exec, hipGraphInstantiate, pGraphExec);
PARAM(GraphInstantiateParams, graph, hipGraphInstantiate, graph);
PARAM(GraphInstantiateParams, graph_exec, hipGraphInstantiateWithFlags, pGraphExec);
PARAM(GraphInstantiateParams, graph, hipGraphInstantiateWithFlags, graph);
PARAM(GraphInstantiateParams, graph_exec, hipGraphInstantiateWithParams, pGraphExec);
PARAM(GraphInstantiateParams, graph, hipGraphInstantiateWithParams, graph);
PARAM(GraphParams, graph, hipGraphDestroy, graph);
PARAM(GraphParams, graph, hipGraphExecDestroy, graphExec);
PARAM(GraphExecUpdateParams, graph_exec, hipGraphExecUpdate, hGraphExec);
PARAM(GraphExecUpdateParams, graph, hipGraphExecUpdate, hGraph);
PARAM(GraphCloneParams, clone, hipGraphClone, pGraphClone);
PARAM(GraphCloneParams, original, hipGraphClone, originalGraph);
PARAM(GraphAddChildNodeParams, node, hipGraphAddChildGraphNode, pGraphNode);
PARAM(GraphAddChildNodeParams, graph, hipGraphAddChildGraphNode, graph);
PARAM(GraphAddChildNodeParams, dependency_count, hipGraphAddChildGraphNode, numDependencies);
PARAM(GraphAddChildNodeParams, child, hipGraphAddChildGraphNode, childGraph);
PARAM(GraphAddKernelNodeParams, node, hipGraphAddKernelNode, pGraphNode);
PARAM(GraphAddKernelNodeParams, graph, hipGraphAddKernelNode, graph);
PARAM(GraphAddKernelNodeParams, parameters, hipGraphAddKernelNode, pNodeParams);
PARAM(CopyAsyncParams, bytes, hipMemcpyAsync, sizeBytes);
PARAM(CopyAsyncParams, kind, hipMemcpyAsync, kind);
PARAM(CopyAsyncParams, stream, hipMemcpyAsync, stream);
PARAM(CopyAsyncParams, stream, hipMemcpyWithStream, stream);
PARAM(SetAsyncParams, bytes, hipMemsetAsync, sizeBytes);
PARAM(SetAsyncParams, stream, hipMemsetAsync, stream);
PARAM(LaunchKernelExParams, host_function, hipLaunchKernelExC, fPtr);
PARAM(DrvLaunchKernelExParams, function, hipDrvLaunchKernelEx, f);
