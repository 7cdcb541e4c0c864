// cuda_abi.h says what NVIDIA's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/cuda/cuda_abi.h"

#include <cuda.h>

#include <cupti.h>

#include "driver/vendor_checks.h"

using namespace proton::cuda;

SAME(kSuccess, CUDA_SUCCESS);
SAME(kErrorInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(kErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(kErrorNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(kErrorDeinitialized, CUDA_ERROR_DEINITIALIZED);
SAME(kErrorNoDevice, CUDA_ERROR_NO_DEVICE);
SAME(kErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME(kErrorInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME(kErrorNotFound, CUDA_ERROR_NOT_FOUND);
SAME(kErrorNotReady, CUDA_ERROR_NOT_READY);
SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME(kFunctionSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(kFunctionRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(kErrorStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(kErrorStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(kAttributeWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(kAttributeClockRateKhz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(kAttributeMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(kAttributeMemoryClockRateKhz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(kAttributeMemoryBusWidthBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(kAttributeL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(kAttributeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(kAttributeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(kCaptureNone, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(kCaptureActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(kCaptureInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(kNodeKernel, CU_GRAPH_NODE_TYPE_KERNEL);
SAME(kNodeMemcpy, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME(kNodeMemset, CU_GRAPH_NODE_TYPE_MEMSET);
SAME(kNodeHost, CU_GRAPH_NODE_TYPE_HOST);
SAME(kNodeGraph, CU_GRAPH_NODE_TYPE_GRAPH);
SAME(kNodeEmpty, CU_GRAPH_NODE_TYPE_EMPTY);
SAME(kNodeWaitEvent, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
SAME(kNodeEventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
SAME(kNodeMemAlloc, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
SAME(kNodeMemFree, CU_GRAPH_NODE_TYPE_MEM_FREE);
FIELD(LaunchKernelParams, function, cuLaunchKernel_params, f);
FIELD(LaunchKernelParams, grid, cuLaunchKernel_params, gridDimX);
FIELD(LaunchKernelParams, block, cuLaunchKernel_params, blockDimX);
FIELD(LaunchKernelParams, shared_bytes, cuLaunchKernel_params, sharedMemBytes);
FIELD(LaunchKernelParams, stream, cuLaunchKernel_params, hStream);
FIELD(LaunchKernelParams, kernel_params, cuLaunchKernel_params, kernelParams);
FIELD(LaunchKernelParams, extra, cuLaunchKernel_params, extra);
FIELD(LaunchKernelParams, function, cuLaunchKernel_ptsz_params, f);
FIELD(LaunchKernelParams, grid, cuLaunchKernel_ptsz_params, gridDimX);
FIELD(LaunchKernelParams, block, cuLaunchKernel_ptsz_params, blockDimX);
FIELD(LaunchKernelParams, shared_bytes, cuLaunchKernel_ptsz_params, sharedMemBytes);
FIELD(LaunchKernelParams, stream, cuLaunchKernel_ptsz_params, hStream);
FIELD(LaunchKernelParams, kernel_params, cuLaunchKernel_ptsz_params, kernelParams);
FIELD(LaunchKernelParams, extra, cuLaunchKernel_ptsz_params, extra);
START(LaunchKernelParams, function, cuLaunchCooperativeKernel_params, f);
START(LaunchKernelParams, grid, cuLaunchCooperativeKernel_params, gridDimX);
START(LaunchKernelParams, block, cuLaunchCooperativeKernel_params, blockDimX);
START(LaunchKernelParams, shared_bytes, cuLaunchCooperativeKernel_params, sharedMemBytes);
START(LaunchKernelParams, stream, cuLaunchCooperativeKernel_params, hStream);
START(LaunchKernelParams, kernel_params, cuLaunchCooperativeKernel_params, kernelParams);
FIELD(LaunchConfig, grid, CUlaunchConfig, gridDimX);
FIELD(LaunchConfig, block, CUlaunchConfig, blockDimX);
FIELD(LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
FIELD(LaunchConfig, stream, CUlaunchConfig, hStream);
FIELD(LaunchConfig, attributes, CUlaunchConfig, attrs);
FIELD(LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
FIELD(LaunchKernelExParams, config, cuLaunchKernelEx_params, config);
FIELD(LaunchKernelExParams, function, cuLaunchKernelEx_params, f);
FIELD(LaunchKernelExParams, kernel_params, cuLaunchKernelEx_params, kernelParams);
FIELD(LaunchKernelExParams, extra, cuLaunchKernelEx_params, extra);
FIELD(LaunchKernelExParams, config, cuLaunchKernelEx_ptsz_params, config);
FIELD(LaunchKernelExParams, function, cuLaunchKernelEx_ptsz_params, f);
FIELD(LaunchKernelExParams, kernel_params, cuLaunchKernelEx_ptsz_params, kernelParams);
FIELD(LaunchKernelExParams, extra, cuLaunchKernelEx_ptsz_params, extra);
FIELD(GraphLaunchParams, graph_exec, cuGraphLaunch_params, hGraph);
FIELD(GraphLaunchParams, stream, cuGraphLaunch_params, hStream);
FIELD(GraphLaunchParams, graph_exec, cuGraphLaunch_ptsz_params, hGraphExec);
FIELD(GraphLaunchParams, stream, cuGraphLaunch_ptsz_params, hStream);
START(StreamBeginCaptureParams, stream, cuStreamBeginCapture_v2_params, hStream);
START(StreamBeginCaptureParams, stream, cuStreamBeginCapture_v2_ptsz_params, hStream);
START(StreamBeginCaptureToGraphParams, stream, cuStreamBeginCaptureToGraph_params, hStream);
START(StreamBeginCaptureToGraphParams, graph, cuStreamBeginCaptureToGraph_params, hGraph);
START(StreamEndCaptureParams, stream, cuStreamEndCapture_params, hStream);
START(StreamEndCaptureParams, graph, cuStreamEndCapture_params, phGraph);
START(GraphInstantiateParams, graph_exec, cuGraphInstantiate_v2_params, phGraphExec);
START(GraphInstantiateParams, graph, cuGraphInstantiate_v2_params, hGraph);
START(GraphInstantiateParams, graph_exec, cuGraphInstantiateWithFlags_params, phGraphExec);
START(GraphInstantiateParams, graph, cuGraphInstantiateWithFlags_params, hGraph);
START(GraphInstantiateParams, graph_exec, cuGraphInstantiateWithParams_params, phGraphExec);
START(GraphInstantiateParams, graph, cuGraphInstantiateWithParams_params, hGraph);
START(GraphExecUpdateParams, graph_exec, cuGraphExecUpdate_params, hGraphExec);
START(GraphExecUpdateParams, graph, cuGraphExecUpdate_params, hGraph);
START(GraphExecUpdateParams, graph_exec, cuGraphExecUpdate_v2_params, hGraphExec);
START(GraphExecUpdateParams, graph, cuGraphExecUpdate_v2_params, hGraph);
START(GraphCloneParams, clone, cuGraphClone_params, phGraphClone);
START(GraphCloneParams, original, cuGraphClone_params, originalGraph);
START(GraphAddChildNodeParams, node, cuGraphAddChildGraphNode_params, phGraphNode);
START(GraphAddChildNodeParams, graph, cuGraphAddChildGraphNode_params, hGraph);
START(GraphAddChildNodeParams, dependencies, cuGraphAddChildGraphNode_params, dependencies);
START(GraphAddChildNodeParams, dependency_count, cuGraphAddChildGraphNode_params, numDependencies);
START(GraphAddChildNodeParams, child, cuGraphAddChildGraphNode_params, childGraph);
START(GraphExecKernelNodeSetParamsParams, graph_exec, cuGraphExecKernelNodeSetParams_v2_params,
      hGraphExec);
START(GraphExecKernelNodeSetParamsParams, node, cuGraphExecKernelNodeSetParams_v2_params, hNode);

static_assert(sizeof(DevicePointer) == sizeof(CUdeviceptr));
SAME_CALL(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
SAME_CALL(CtxGetCurrent, cuCtxGetCurrent);
SAME_CALL(CtxSetCurrent, cuCtxSetCurrent);
SAME_CALL(CtxGetDevice, cuCtxGetDevice);
SAME_CALL(ModuleLoadData, cuModuleLoadData);
SAME_CALL(ModuleUnload, cuModuleUnload);
SAME_CALL(ModuleGetFunction, cuModuleGetFunction);
SAME_CALL(LaunchKernel, cuLaunchKernel);
SAME_CALL(MemAlloc, cuMemAlloc);
SAME_CALL(MemFree, cuMemFree);
SAME_CALL(MemHostAlloc, cuMemHostAlloc);
SAME_CALL(MemFreeHost, cuMemFreeHost);
SAME_CALL(MemsetD8Async, cuMemsetD8Async);
SAME_CALL(MemcpyDtoHAsync, cuMemcpyDtoHAsync);
SAME_CALL(StreamCreate, cuStreamCreate);
SAME_CALL(StreamDestroy, cuStreamDestroy);
SAME_CALL(StreamSynchronize, cuStreamSynchronize);
SAME_CALL(StreamWaitEvent, cuStreamWaitEvent);
SAME_CALL(StreamIsCapturing, cuStreamIsCapturing);
#if CUDA_VERSION >= 12000
SAME_CALL(StreamGetId, cuStreamGetId);
#endif
#if CUDA_VERSION >= 12000 && CUDA_VERSION < 13000
SAME_CALL(StreamGetCaptureInfo, cuStreamGetCaptureInfo); // _v2; of 13 the header names _v3 so
#endif
SAME_CALL(EventCreate, cuEventCreate);
SAME_CALL(EventDestroy, cuEventDestroy);
SAME_CALL(EventRecord, cuEventRecord);
SAME_CALL(EventQuery, cuEventQuery);
SAME_CALL(EventSynchronize, cuEventSynchronize);
SAME_CALL(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode);
