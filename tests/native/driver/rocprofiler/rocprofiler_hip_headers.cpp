// rocprofiler_hip_calls.h and rocprofiler_hip_thread_calls.h say what AMD's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/rocprofiler/rocprofiler_hip_calls.h"

#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/hip/runtime_api_id.h>

#include "driver/rocprofiler/rocprofiler_hip_thread_calls.h"
#include "driver/vendor_checks.h"

#define CALL(ours, theirs) SAME(ours, ROCPROFILER_HIP_RUNTIME_API_ID_##theirs)
#define PARAM(type, field, call, vendor_field)                                                     \
  SAME(offsetof(type, field), offsetof(rocprofiler_hip_api_args_t, call.vendor_field))

using namespace proton::rocprofiler;

CALL(kHipExtLaunchKernel, hipExtLaunchKernel);
CALL(kHipExtLaunchMultiKernelMultiDevice, hipExtLaunchMultiKernelMultiDevice);
CALL(kHipGraphAddChildGraphNode, hipGraphAddChildGraphNode);
CALL(kHipGraphAddKernelNode, hipGraphAddKernelNode);
CALL(kHipGraphClone, hipGraphClone);
CALL(kHipGraphDestroy, hipGraphDestroy);
CALL(kHipGraphExecDestroy, hipGraphExecDestroy);
CALL(kHipGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams);
CALL(kHipGraphExecUpdate, hipGraphExecUpdate);
CALL(kHipGraphInstantiate, hipGraphInstantiate);
CALL(kHipGraphInstantiateWithFlags, hipGraphInstantiateWithFlags);
CALL(kHipGraphLaunch, hipGraphLaunch);
CALL(kHipLaunchByPtr, hipLaunchByPtr);
CALL(kHipLaunchCooperativeKernel, hipLaunchCooperativeKernel);
CALL(kHipLaunchCooperativeKernelMultiDevice, hipLaunchCooperativeKernelMultiDevice);
CALL(kHipLaunchKernel, hipLaunchKernel);
CALL(kHipMemcpy, hipMemcpy);
CALL(kHipMemcpy2D, hipMemcpy2D);
CALL(kHipMemcpy2DAsync, hipMemcpy2DAsync);
CALL(kHipMemcpy3D, hipMemcpy3D);
CALL(kHipMemcpy3DAsync, hipMemcpy3DAsync);
CALL(kHipMemcpyAsync, hipMemcpyAsync);
CALL(kHipMemcpyDtoD, hipMemcpyDtoD);
CALL(kHipMemcpyDtoDAsync, hipMemcpyDtoDAsync);
CALL(kHipMemcpyDtoH, hipMemcpyDtoH);
CALL(kHipMemcpyDtoHAsync, hipMemcpyDtoHAsync);
CALL(kHipMemcpyHtoD, hipMemcpyHtoD);
CALL(kHipMemcpyHtoDAsync, hipMemcpyHtoDAsync);
CALL(kHipMemcpyParam2D, hipMemcpyParam2D);
CALL(kHipMemcpyParam2DAsync, hipMemcpyParam2DAsync);
CALL(kHipMemcpyPeer, hipMemcpyPeer);
CALL(kHipMemcpyPeerAsync, hipMemcpyPeerAsync);
CALL(kHipMemcpyWithStream, hipMemcpyWithStream);
CALL(kHipMemset, hipMemset);
CALL(kHipMemset2D, hipMemset2D);
CALL(kHipMemset2DAsync, hipMemset2DAsync);
CALL(kHipMemset3D, hipMemset3D);
CALL(kHipMemset3DAsync, hipMemset3DAsync);
CALL(kHipMemsetAsync, hipMemsetAsync);
CALL(kHipMemsetD16, hipMemsetD16);
CALL(kHipMemsetD16Async, hipMemsetD16Async);
CALL(kHipMemsetD32, hipMemsetD32);
CALL(kHipMemsetD32Async, hipMemsetD32Async);
CALL(kHipMemsetD8, hipMemsetD8);
CALL(kHipMemsetD8Async, hipMemsetD8Async);
CALL(kHipModuleLaunchCooperativeKernel, hipModuleLaunchCooperativeKernel);
CALL(kHipModuleLaunchCooperativeKernelMultiDevice, hipModuleLaunchCooperativeKernelMultiDevice);
CALL(kHipModuleLaunchKernel, hipModuleLaunchKernel);
CALL(kHipStreamBeginCapture, hipStreamBeginCapture);
CALL(kHipStreamEndCapture, hipStreamEndCapture);
CALL(kHipExtModuleLaunchKernel, hipExtModuleLaunchKernel);
CALL(kHipHccModuleLaunchKernel, hipHccModuleLaunchKernel);
CALL(kHipGraphInstantiateWithParams, hipGraphInstantiateWithParams);
CALL(kHipStreamBeginCaptureToGraph, hipStreamBeginCaptureToGraph);
CALL(kHipLaunchKernelExC, hipLaunchKernelExC);
CALL(kHipDrvLaunchKernelEx, hipDrvLaunchKernelEx);
CALL(kHipMemcpySpt, hipMemcpy_spt);
CALL(kHipMemcpy2DSpt, hipMemcpy2D_spt);
CALL(kHipMemcpy3DSpt, hipMemcpy3D_spt);
CALL(kHipMemsetSpt, hipMemset_spt);
CALL(kHipMemsetAsyncSpt, hipMemsetAsync_spt);
CALL(kHipMemset2DSpt, hipMemset2D_spt);
CALL(kHipMemset2DAsyncSpt, hipMemset2DAsync_spt);
CALL(kHipMemset3DAsyncSpt, hipMemset3DAsync_spt);
CALL(kHipMemset3DSpt, hipMemset3D_spt);
CALL(kHipMemcpyAsyncSpt, hipMemcpyAsync_spt);
CALL(kHipMemcpy3DAsyncSpt, hipMemcpy3DAsync_spt);
CALL(kHipMemcpy2DAsyncSpt, hipMemcpy2DAsync_spt);
CALL(kHipLaunchCooperativeKernelSpt, hipLaunchCooperativeKernel_spt);
CALL(kHipLaunchKernelSpt, hipLaunchKernel_spt);
CALL(kHipGraphLaunchSpt, hipGraphLaunch_spt);
CALL(kHipStreamBeginCaptureSpt, hipStreamBeginCapture_spt);
CALL(kHipStreamEndCaptureSpt, hipStreamEndCapture_spt);

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
PARAM(MultiLaunchParams, launches, hipLaunchCooperativeKernelMultiDevice, launchParamsList);
PARAM(MultiLaunchParams, launches, hipExtLaunchMultiKernelMultiDevice, launchParamsList);
PARAM(MultiLaunchParams, launches, hipModuleLaunchCooperativeKernelMultiDevice, launchParamsList);
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
PARAM(GraphExecKernelNodeSetParamsParams, graph_exec, hipGraphExecKernelNodeSetParams, hGraphExec);
PARAM(GraphExecKernelNodeSetParamsParams, node, hipGraphExecKernelNodeSetParams, node);
PARAM(GraphExecKernelNodeSetParamsParams, parameters, hipGraphExecKernelNodeSetParams, pNodeParams);
PARAM(CopyAsyncParams, bytes, hipMemcpyAsync, sizeBytes);
PARAM(CopyAsyncParams, kind, hipMemcpyAsync, kind);
PARAM(CopyAsyncParams, stream, hipMemcpyAsync, stream);
PARAM(CopyAsyncParams, stream, hipMemcpyWithStream, stream);
PARAM(SetAsyncParams, bytes, hipMemsetAsync, sizeBytes);
PARAM(SetAsyncParams, stream, hipMemsetAsync, stream);
PARAM(LaunchKernelExParams, host_function, hipLaunchKernelExC, fPtr);
PARAM(DrvLaunchKernelExParams, function, hipDrvLaunchKernelEx, f);
