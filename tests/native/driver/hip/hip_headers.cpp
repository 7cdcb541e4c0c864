// hip_abi.h says what AMD's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/hip/hip_abi.h"

#include <hip/hip_runtime_api.h>

#include "driver/vendor_checks.h"

using namespace proton::hip;

SAME(kSuccess, hipSuccess);
SAME(kErrorInvalidValue, hipErrorInvalidValue);
SAME(kErrorOutOfMemory, hipErrorOutOfMemory);
SAME(kErrorNotInitialized, hipErrorNotInitialized);
SAME(kErrorDeinitialized, hipErrorDeinitialized);
SAME(kErrorNoDevice, hipErrorNoDevice);
SAME(kErrorInvalidDevice, hipErrorInvalidDevice);
SAME(kErrorNotFound, hipErrorNotFound);
SAME(kErrorNotReady, hipErrorNotReady);
SAME(kErrorStreamCaptureUnsupported, hipErrorStreamCaptureUnsupported);
SAME(kErrorStreamCaptureImplicit, hipErrorStreamCaptureImplicit);
SAME(kCaptureModeRelaxed, hipStreamCaptureModeRelaxed);
SAME(kCaptureNone, hipStreamCaptureStatusNone);
SAME(kCaptureActive, hipStreamCaptureStatusActive);
SAME(kCaptureInvalidated, hipStreamCaptureStatusInvalidated);
SAME(kHostAllocPortable, hipHostMallocPortable);
SAME(kHostAllocDeviceMap, hipHostMallocMapped);
SAME(kAttributeClockRateKhz, hipDeviceAttributeClockRate);
SAME(kAttributeL2Bytes, hipDeviceAttributeL2CacheSize);
SAME(kAttributeCapabilityMajor, hipDeviceAttributeComputeCapabilityMajor);
SAME(kAttributeMemoryBusWidthBits, hipDeviceAttributeMemoryBusWidth);
SAME(kAttributeMemoryClockRateKhz, hipDeviceAttributeMemoryClockRate);
SAME(kAttributeMultiprocessors, hipDeviceAttributeMultiprocessorCount);
SAME(kAttributeWarpSize, hipDeviceAttributeWarpSize);
SAME(kCopyHostToHost, hipMemcpyHostToHost);
SAME(kCopyHostToDevice, hipMemcpyHostToDevice);
SAME(kCopyDeviceToHost, hipMemcpyDeviceToHost);
SAME(kCopyDeviceToDevice, hipMemcpyDeviceToDevice);
SAME(kNodeKernel, hipGraphNodeTypeKernel);
SAME(kNodeMemcpy, hipGraphNodeTypeMemcpy);
SAME(kNodeMemset, hipGraphNodeTypeMemset);
SAME(kNodeHost, hipGraphNodeTypeHost);
SAME(kNodeGraph, hipGraphNodeTypeGraph);
SAME(kNodeEmpty, hipGraphNodeTypeEmpty);
SAME(kNodeWaitEvent, hipGraphNodeTypeWaitEvent);
SAME(kNodeEventRecord, hipGraphNodeTypeEventRecord);
SAME(kNodeMemAlloc, hipGraphNodeTypeMemAlloc);
SAME(kNodeMemFree, hipGraphNodeTypeMemFree);
AT(properties_offset::kName, hipDeviceProp_t, name);
AT(properties_offset::kUuid, hipDeviceProp_t, uuid);
AT(properties_offset::kArch, hipDeviceProp_t, gcnArchName);
SAME(kPropertiesBytes, sizeof(hipDeviceProp_t));
SAME(kPropertiesTextBytes, sizeof(hipDeviceProp_t::gcnArchName));
FIELD(LaunchConfig, grid, hipLaunchConfig_t, gridDim);
FIELD(LaunchConfig, block, hipLaunchConfig_t, blockDim);
FIELD(LaunchConfig, shared_bytes, hipLaunchConfig_t, dynamicSmemBytes);
FIELD(LaunchConfig, stream, hipLaunchConfig_t, stream);
FIELD(LaunchConfig, attributes, hipLaunchConfig_t, attrs);
FIELD(LaunchConfig, attribute_count, hipLaunchConfig_t, numAttrs);
FIELD(DriverLaunchConfig, grid, HIP_LAUNCH_CONFIG, gridDimX);
FIELD(DriverLaunchConfig, block, HIP_LAUNCH_CONFIG, blockDimX);
FIELD(DriverLaunchConfig, shared_bytes, HIP_LAUNCH_CONFIG, sharedMemBytes);
FIELD(DriverLaunchConfig, stream, HIP_LAUNCH_CONFIG, hStream);
FIELD(DriverLaunchConfig, attributes, HIP_LAUNCH_CONFIG, attrs);
FIELD(DriverLaunchConfig, attribute_count, HIP_LAUNCH_CONFIG, numAttrs);
FIELD(MultiLaunch, function, hipLaunchParams, func);
FIELD(MultiLaunch, grid, hipLaunchParams, gridDim);
FIELD(MultiLaunch, block, hipLaunchParams, blockDim);
FIELD(MultiLaunch, stream, hipLaunchParams, stream);
FIELD(ModuleMultiLaunch, function, hipFunctionLaunchParams, function);
FIELD(ModuleMultiLaunch, grid, hipFunctionLaunchParams, gridDimX);
FIELD(ModuleMultiLaunch, block, hipFunctionLaunchParams, blockDimX);
FIELD(ModuleMultiLaunch, shared_bytes, hipFunctionLaunchParams, sharedMemBytes);
FIELD(ModuleMultiLaunch, stream, hipFunctionLaunchParams, hStream);
FIELD(KernelNodeParams, block, hipKernelNodeParams, blockDim);
FIELD(KernelNodeParams, function, hipKernelNodeParams, func);
FIELD(KernelNodeParams, grid, hipKernelNodeParams, gridDim);
FIELD(KernelNodeParams, kernel_params, hipKernelNodeParams, kernelParams);
FIELD(KernelNodeParams, shared_bytes, hipKernelNodeParams, sharedMemBytes);

SAME_CALL(Init, hipInit);
SAME_CALL(RuntimeGetVersion, hipRuntimeGetVersion);
SAME_CALL(DriverGetVersion, hipDriverGetVersion);
SAME_CALL(GetErrorName, hipGetErrorName);
SAME_CALL(GetErrorString, hipGetErrorString);
SAME_CALL(GetDeviceCount, hipGetDeviceCount);
SAME_CALL(GetDevice, hipGetDevice);
SAME_CALL(SetDevice, hipSetDevice);
SAME_CALL(DeviceGetName, hipDeviceGetName);
SAME_CALL(DeviceGetUuid, hipDeviceGetUuid);
SAME_CALL(DeviceGetPciBusId, hipDeviceGetPCIBusId);
SAME_CALL(DeviceGetAttribute, hipDeviceGetAttribute);
SAME_CALL(GetDeviceProperties, hipGetDevicePropertiesR0600);
SAME_CALL(DeviceSynchronize, hipDeviceSynchronize);
SAME_CALL(StreamSynchronize, hipStreamSynchronize);
SAME_CALL(StreamIsCapturing, hipStreamIsCapturing);
SAME_CALL(StreamGetCaptureInfo, hipStreamGetCaptureInfo_v2);
SAME_CALL(ThreadExchangeStreamCaptureMode, hipThreadExchangeStreamCaptureMode);
SAME_CALL(GraphGetNodes, hipGraphGetNodes);
SAME_CALL(GraphNodeGetType, hipGraphNodeGetType);
SAME_CALL(KernelNameRef, hipKernelNameRef);
SAME_CALL(KernelNameRefByPtr, hipKernelNameRefByPtr);
