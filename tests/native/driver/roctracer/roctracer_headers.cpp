// roctracer_library.h and roctracer_hip_calls.h say what AMD's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/roctracer/roctracer_hip_calls.h"
#include "driver/roctracer/roctracer_library.h"

#include <hip/amd_detail/hip_runtime_prof.h>
#include <roctracer/roctracer.h>
#include <roctracer/roctracer_ext.h>
#include <roctracer/roctracer_hip.h>

#include "driver/vendor_checks.h"

#define CALL(name, ...) SAME(kHip##name, HIP_API_ID_hip##name);
#define PARAM(type, field, call, vendor_field)                                                     \
  SAME(offsetof(type, field) + kHipParameters, offsetof(hip_api_data_t, args.call.vendor_field))

using namespace proton::roctracer;

SAME(kSuccess, ROCTRACER_STATUS_SUCCESS);
SAME(kError, ROCTRACER_STATUS_ERROR);
SAME(kErrorInvalidDomain, ROCTRACER_STATUS_ERROR_INVALID_DOMAIN_ID);
SAME(kErrorInvalidArgument, ROCTRACER_STATUS_ERROR_INVALID_ARGUMENT);
SAME(kErrorDefaultPoolUndefined, ROCTRACER_STATUS_ERROR_DEFAULT_POOL_UNDEFINED);
SAME(kErrorDefaultPoolAlreadyDefined, ROCTRACER_STATUS_ERROR_DEFAULT_POOL_ALREADY_DEFINED);
SAME(kErrorMemoryAllocation, ROCTRACER_STATUS_ERROR_MEMORY_ALLOCATION);
SAME(kErrorMismatchedExternalCorrelation,
     ROCTRACER_STATUS_ERROR_MISMATCHED_EXTERNAL_CORRELATION_ID);
SAME(kErrorNotImplemented, ROCTRACER_STATUS_ERROR_NOT_IMPLEMENTED);
SAME(kUninitialized, ROCTRACER_STATUS_UNINIT);
SAME(kBreak, ROCTRACER_STATUS_BREAK);
SAME(kErrorHipApi, ROCTRACER_STATUS_HIP_API_ERR);
SAME(kErrorHipOps, ROCTRACER_STATUS_HIP_OPS_ERR);
SAME(kErrorRoctx, ROCTRACER_STATUS_ROCTX_ERR);
SAME(kDomainHipOps, ACTIVITY_DOMAIN_HIP_OPS);
SAME(kDomainHipApi, ACTIVITY_DOMAIN_HIP_API);
SAME(kDomainRoctx, ACTIVITY_DOMAIN_ROCTX);
SAME(kEnter, ACTIVITY_API_PHASE_ENTER);
SAME(kExit, ACTIVITY_API_PHASE_EXIT);
SAME(kOpDispatch, HIP_OP_ID_DISPATCH);
SAME(kOpCopy, HIP_OP_ID_COPY);
SAME(kOpBarrier, HIP_OP_ID_BARRIER);
SAME(kCommandKernel, kHipVdiCommandKernel);
SAME(kCommandCopyDeviceToHost, kHipVdiMemcpyDeviceToHost);
SAME(kCommandCopyHostToDevice, kHipHipVdiMemcpyHostToDevice);
SAME(kCommandCopyDeviceToDevice, kHipVdiMemcpyDeviceToDevice);
SAME(kCommandCopyDeviceToHostRect, kHipVidMemcpyDeviceToHostRect);
SAME(kCommandCopyHostToDeviceRect, kHipVdiMemcpyHostToDeviceRect);
SAME(kCommandCopyDeviceToDeviceRect, kHipVdiMemcpyDeviceToDeviceRect);
SAME(kCommandFill, kHipVdiFillMemory);
FIELD(Record, domain, activity_record_t, domain);
FIELD(Record, kind, activity_record_t, kind);
FIELD(Record, op, activity_record_t, op);
FIELD(Record, correlation, activity_record_t, correlation_id);
FIELD(Record, begin_ns, activity_record_t, begin_ns);
FIELD(Record, end_ns, activity_record_t, end_ns);
FIELD(Record, device, activity_record_t, device_id);
FIELD(Record, process, activity_record_t, process_id);
FIELD(Record, thread, activity_record_t, thread_id);
FIELD(Record, external_correlation, activity_record_t, external_id);
FIELD(Record, queue, activity_record_t, queue_id);
FIELD(Record, bytes, activity_record_t, bytes);
FIELD(Record, kernel_name, activity_record_t, kernel_name);
FIELD(PoolProperties, mode, roctracer_properties_t, mode);
FIELD(PoolProperties, buffer_bytes, roctracer_properties_t, buffer_size);
FIELD(PoolProperties, allocator, roctracer_properties_t, alloc_fun);
FIELD(PoolProperties, allocator_user, roctracer_properties_t, alloc_arg);
FIELD(PoolProperties, buffer_callback, roctracer_properties_t, buffer_callback_fun);
FIELD(PoolProperties, buffer_user, roctracer_properties_t, buffer_callback_arg);
START(HipApiData, correlation, hip_api_data_t, correlation_id);
START(HipApiData, phase, hip_api_data_t, phase);
AT(kHipParameters, hip_api_data_t, args);

PROTON_HIP_CALLS(CALL)

PARAM(LaunchKernelParams, host_function, hipLaunchKernel, function_address);
PARAM(LaunchKernelParams, grid, hipLaunchKernel, numBlocks);
PARAM(LaunchKernelParams, block, hipLaunchKernel, dimBlocks);
PARAM(LaunchKernelParams, shared_bytes, hipLaunchKernel, sharedMemBytes);
PARAM(LaunchKernelParams, stream, hipLaunchKernel, stream);
PARAM(LaunchKernelParams, host_function, hipExtLaunchKernel, function_address);
PARAM(LaunchKernelParams, grid, hipExtLaunchKernel, numBlocks);
PARAM(LaunchKernelParams, block, hipExtLaunchKernel, dimBlocks);
PARAM(LaunchKernelParams, shared_bytes, hipExtLaunchKernel, sharedMemBytes);
PARAM(LaunchKernelParams, stream, hipExtLaunchKernel, stream);
PARAM(CooperativeLaunchParams, host_function, hipLaunchCooperativeKernel, f);
PARAM(CooperativeLaunchParams, grid, hipLaunchCooperativeKernel, gridDim);
PARAM(CooperativeLaunchParams, block, hipLaunchCooperativeKernel, blockDimX);
PARAM(CooperativeLaunchParams, shared_bytes, hipLaunchCooperativeKernel, sharedMemBytes);
PARAM(CooperativeLaunchParams, stream, hipLaunchCooperativeKernel, stream);
PARAM(ModuleLaunchParams, function, hipModuleLaunchKernel, f);
PARAM(ModuleLaunchParams, grid, hipModuleLaunchKernel, gridDimX);
PARAM(ModuleLaunchParams, block, hipModuleLaunchKernel, blockDimX);
PARAM(ModuleLaunchParams, shared_bytes, hipModuleLaunchKernel, sharedMemBytes);
PARAM(ModuleLaunchParams, stream, hipModuleLaunchKernel, stream);
PARAM(ModuleLaunchParams, function, hipModuleLaunchCooperativeKernel, f);
PARAM(ModuleLaunchParams, grid, hipModuleLaunchCooperativeKernel, gridDimX);
PARAM(ModuleLaunchParams, block, hipModuleLaunchCooperativeKernel, blockDimX);
PARAM(ModuleLaunchParams, shared_bytes, hipModuleLaunchCooperativeKernel, sharedMemBytes);
PARAM(ModuleLaunchParams, stream, hipModuleLaunchCooperativeKernel, stream);
PARAM(ExtModuleLaunchParams, function, hipExtModuleLaunchKernel, f);
PARAM(ExtModuleLaunchParams, work_items, hipExtModuleLaunchKernel, globalWorkSizeX);
PARAM(ExtModuleLaunchParams, block, hipExtModuleLaunchKernel, localWorkSizeX);
PARAM(ExtModuleLaunchParams, shared_bytes, hipExtModuleLaunchKernel, sharedMemBytes);
PARAM(ExtModuleLaunchParams, stream, hipExtModuleLaunchKernel, hStream);
PARAM(ExtModuleLaunchParams, function, hipHccModuleLaunchKernel, f);
PARAM(ExtModuleLaunchParams, work_items, hipHccModuleLaunchKernel, globalWorkSizeX);
PARAM(ExtModuleLaunchParams, block, hipHccModuleLaunchKernel, blockDimX);
PARAM(ExtModuleLaunchParams, stream, hipHccModuleLaunchKernel, hStream);
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

SAME_CALL(VersionMajor, roctracer_version_major);
SAME_CALL(VersionMinor, roctracer_version_minor);
SAME_CALL(ErrorString, roctracer_error_string);
SAME_CALL(EnableOpCallback, roctracer_enable_op_callback);
SAME_CALL(DisableOpCallback, roctracer_disable_op_callback);
SAME_CALL(EnableDomainCallback, roctracer_enable_domain_callback);
SAME_CALL(DisableDomainCallback, roctracer_disable_domain_callback);
SAME_CALL(OpenPoolExpl, roctracer_open_pool_expl);
SAME_CALL(ClosePoolExpl, roctracer_close_pool_expl);
SAME_CALL(EnableDomainActivityExpl, roctracer_enable_domain_activity_expl);
SAME_CALL(DisableDomainActivity, roctracer_disable_domain_activity);
SAME_CALL(FlushActivityExpl, roctracer_flush_activity_expl);
SAME_CALL(NextRecord, roctracer_next_record);
SAME_CALL(GetTimestamp, roctracer_get_timestamp);
SAME_CALL(Start, roctracer_start);
SAME_CALL(Stop, roctracer_stop);
