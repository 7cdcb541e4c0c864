// cupti_abi.h, cupti_records.h and cupti_library.h say what NVIDIA's headers say.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_records.h"

#include <cuda.h>

#include <cupti.h>
#include <cupti_pcsampling.h>

#include "driver/vendor_checks.h"

using namespace proton::cupti;

SAME(kSuccess, CUPTI_SUCCESS);
SAME(kErrorInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
SAME(kErrorInvalidDevice, CUPTI_ERROR_INVALID_DEVICE);
SAME(kErrorInvalidContext, CUPTI_ERROR_INVALID_CONTEXT);
SAME(kErrorInvalidOperation, CUPTI_ERROR_INVALID_OPERATION);
SAME(kErrorOutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
SAME(kErrorMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(kErrorNotReady, CUPTI_ERROR_NOT_READY);
SAME(kErrorNotCompatible, CUPTI_ERROR_NOT_COMPATIBLE);
SAME(kErrorNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
SAME(kErrorInvalidKind, CUPTI_ERROR_INVALID_KIND);
SAME(kErrorHardwareBusy, CUPTI_ERROR_HARDWARE_BUSY);
SAME(kErrorNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
SAME(kErrorVirtualizedDevice, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
SAME(kErrorInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(kErrorMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(kErrorConfidentialComputing, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
SAME(kErrorMigDevice, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
SAME(kErrorWslDevice, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
SAME(kErrorUnknown, CUPTI_ERROR_UNKNOWN);
SAME(kDomainDriver, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(kDomainRuntime, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(kDomainResource, CUPTI_CB_DOMAIN_RESOURCE);
SAME(kDomainNvtx, CUPTI_CB_DOMAIN_NVTX);
SAME(kEnter, CUPTI_API_ENTER);
SAME(kExit, CUPTI_API_EXIT);
SAME(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(kCuLaunch, CUPTI_DRIVER_TRACE_CBID_cuLaunch);
SAME(kCuLaunchGrid, CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid);
SAME(kCuLaunchGridAsync, CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync);
SAME(kCuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
SAME(kCuLaunchKernelPtsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz);
SAME(kCuLaunchCooperativeKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel);
SAME(kCuLaunchCooperativeKernelPtsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz);
SAME(kCuLaunchCooperativeKernelMultiDevice,
     CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice);
SAME(kCuStreamBeginCapture, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture);
SAME(kCuStreamBeginCapturePtsz, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz);
SAME(kCuStreamEndCapture, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture);
SAME(kCuStreamEndCapturePtsz, CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz);
SAME(kCuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
SAME(kCuGraphLaunchPtsz, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz);
SAME(kCuGraphExecDestroy, CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy);
SAME(kCuGraphDestroy, CUPTI_DRIVER_TRACE_CBID_cuGraphDestroy);
SAME(kCuGraphClone, CUPTI_DRIVER_TRACE_CBID_cuGraphClone);
SAME(kCuGraphAddChildGraphNode, CUPTI_DRIVER_TRACE_CBID_cuGraphAddChildGraphNode);
SAME(kCuStreamBeginCaptureV2, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2);
SAME(kCuStreamBeginCaptureV2Ptsz, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz);
SAME(kCuGraphExecUpdate, CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate);
SAME(kCuGraphInstantiateV2, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2);
SAME(kCuGraphInstantiateWithFlags, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags);
SAME(kCuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
SAME(kCuLaunchKernelExPtsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz);
SAME(kCuGraphInstantiateWithParams, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams);
SAME(kCuGraphInstantiateWithParamsPtsz, CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz);
SAME(kCuGraphExecUpdateV2, CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2);
SAME(kCuStreamBeginCaptureToGraph, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph);
SAME(kCuStreamBeginCaptureToGraphPtsz, CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz);
SAME(kContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
SAME(kContextDestroyStarting, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME(kStreamCreated, CUPTI_CBID_RESOURCE_STREAM_CREATED);
SAME(kStreamDestroyStarting, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
SAME(kModuleLoaded, CUPTI_CBID_RESOURCE_MODULE_LOADED);
SAME(kModuleUnloadStarting, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
SAME(kModuleProfiled, CUPTI_CBID_RESOURCE_MODULE_PROFILED);
SAME(kGraphCreated, CUPTI_CBID_RESOURCE_GRAPH_CREATED);
SAME(kGraphDestroyStarting, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING);
SAME(kGraphCloned, CUPTI_CBID_RESOURCE_GRAPH_CLONED);
SAME(kGraphNodeCreateStarting, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING);
SAME(kGraphNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME(kGraphNodeDestroyStarting, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
SAME(kGraphNodeDependencyCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED);
SAME(kGraphExecCreateStarting, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING);
SAME(kGraphExecCreated, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
SAME(kGraphExecDestroyStarting, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
SAME(kGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
#if CUPTI_API_VERSION >= 130000
#endif
SAME(kKindMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(kKindMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(kKindKernel, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(kKindDevice, CUPTI_ACTIVITY_KIND_DEVICE);
SAME(kKindConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(kKindMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(kKindGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME(kCopyHostToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(kCopyDeviceToHost, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(kCopyDeviceToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME(kCopyHostToHost, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
#define KERNEL(version)                                                                            \
  AT(kernel_offset::kRegisters, CUpti_ActivityKernel##version, registersPerThread);                \
  AT(kernel_offset::kStart, CUpti_ActivityKernel##version, start);                                 \
  AT(kernel_offset::kEnd, CUpti_ActivityKernel##version, end);                                     \
  AT(kernel_offset::kDevice, CUpti_ActivityKernel##version, deviceId);                             \
  AT(kernel_offset::kContext, CUpti_ActivityKernel##version, contextId);                           \
  AT(kernel_offset::kStream, CUpti_ActivityKernel##version, streamId);                             \
  AT(kernel_offset::kGrid, CUpti_ActivityKernel##version, gridX);                                  \
  AT(kernel_offset::kBlock, CUpti_ActivityKernel##version, blockX);                                \
  AT(kernel_offset::kStaticShared, CUpti_ActivityKernel##version, staticSharedMemory);             \
  AT(kernel_offset::kDynamicShared, CUpti_ActivityKernel##version, dynamicSharedMemory);           \
  AT(kernel_offset::kLocalPerThread, CUpti_ActivityKernel##version, localMemoryPerThread);         \
  AT(kernel_offset::kCorrelation, CUpti_ActivityKernel##version, correlationId);                   \
  AT(kernel_offset::kName, CUpti_ActivityKernel##version, name);                                   \
  AT(kernel_offset::kGraphNode, CUpti_ActivityKernel##version, graphNodeId);                       \
  AT(kernel_offset::kGraph, CUpti_ActivityKernel##version, graphId);                               \
  SAME(kKernelBytes[version - kFirstKernelVersion], sizeof(CUpti_ActivityKernel##version))

KERNEL(5);
KERNEL(6);
KERNEL(7);
KERNEL(8);
KERNEL(9);
#if CUPTI_API_VERSION >= 130500
KERNEL(10);
KERNEL(11);
KERNEL(12);
KERNEL(13);
#endif

AT(memcpy_offset::kCopyKind, CUpti_ActivityMemcpy5, copyKind);
AT(memcpy_offset::kFlags, CUpti_ActivityMemcpy5, flags);
AT(memcpy_offset::kBytes, CUpti_ActivityMemcpy5, bytes);
AT(memcpy_offset::kStart, CUpti_ActivityMemcpy5, start);
AT(memcpy_offset::kEnd, CUpti_ActivityMemcpy5, end);
AT(memcpy_offset::kDevice, CUpti_ActivityMemcpy5, deviceId);
AT(memcpy_offset::kContext, CUpti_ActivityMemcpy5, contextId);
AT(memcpy_offset::kStream, CUpti_ActivityMemcpy5, streamId);
AT(memcpy_offset::kCorrelation, CUpti_ActivityMemcpy5, correlationId);
AT(memcpy_offset::kGraphNode, CUpti_ActivityMemcpy5, graphNodeId);
AT(memcpy_offset::kGraph, CUpti_ActivityMemcpy5, graphId);
AT(memcpy_offset::kGraph, CUpti_ActivityMemcpy6, graphId);
SAME(kMemcpy5Bytes, sizeof(CUpti_ActivityMemcpy5));
SAME(kMemcpy6Bytes, sizeof(CUpti_ActivityMemcpy6));
AT(peer_offset::kCopyKind, CUpti_ActivityMemcpyPtoP4, copyKind);
AT(peer_offset::kBytes, CUpti_ActivityMemcpyPtoP4, bytes);
AT(peer_offset::kStart, CUpti_ActivityMemcpyPtoP4, start);
AT(peer_offset::kEnd, CUpti_ActivityMemcpyPtoP4, end);
AT(peer_offset::kDevice, CUpti_ActivityMemcpyPtoP4, deviceId);
AT(peer_offset::kContext, CUpti_ActivityMemcpyPtoP4, contextId);
AT(peer_offset::kStream, CUpti_ActivityMemcpyPtoP4, streamId);
AT(peer_offset::kCorrelation, CUpti_ActivityMemcpyPtoP4, correlationId);
AT(peer_offset::kGraphNode, CUpti_ActivityMemcpyPtoP4, graphNodeId);
AT(peer_offset::kGraph, CUpti_ActivityMemcpyPtoP4, graphId);
SAME(kPeerBytes, sizeof(CUpti_ActivityMemcpyPtoP4));
AT(memset_offset::kValue, CUpti_ActivityMemset4, value);
AT(memset_offset::kBytes, CUpti_ActivityMemset4, bytes);
AT(memset_offset::kStart, CUpti_ActivityMemset4, start);
AT(memset_offset::kEnd, CUpti_ActivityMemset4, end);
AT(memset_offset::kDevice, CUpti_ActivityMemset4, deviceId);
AT(memset_offset::kContext, CUpti_ActivityMemset4, contextId);
AT(memset_offset::kStream, CUpti_ActivityMemset4, streamId);
AT(memset_offset::kCorrelation, CUpti_ActivityMemset4, correlationId);
AT(memset_offset::kFlags, CUpti_ActivityMemset4, flags);
AT(memset_offset::kGraphNode, CUpti_ActivityMemset4, graphNodeId);
AT(memset_offset::kGraph, CUpti_ActivityMemset4, graphId);
SAME(kMemsetBytes, sizeof(CUpti_ActivityMemset4));
AT(graph_trace_offset::kCorrelation, CUpti_ActivityGraphTrace, correlationId);
AT(graph_trace_offset::kStart, CUpti_ActivityGraphTrace, start);
AT(graph_trace_offset::kEnd, CUpti_ActivityGraphTrace, end);
AT(graph_trace_offset::kDevice, CUpti_ActivityGraphTrace, deviceId);
AT(graph_trace_offset::kGraph, CUpti_ActivityGraphTrace, graphId);
AT(graph_trace_offset::kContext, CUpti_ActivityGraphTrace, contextId);
AT(graph_trace_offset::kStream, CUpti_ActivityGraphTrace, streamId);
AT(graph_trace_offset::kCorrelation, CUpti_ActivityGraphTrace2, correlationId);
AT(graph_trace_offset::kStart, CUpti_ActivityGraphTrace2, start);
AT(graph_trace_offset::kEnd, CUpti_ActivityGraphTrace2, end);
AT(graph_trace_offset::kDevice, CUpti_ActivityGraphTrace2, deviceId);
AT(graph_trace_offset::kGraph, CUpti_ActivityGraphTrace2, graphId);
AT(graph_trace_offset::kContext, CUpti_ActivityGraphTrace2, contextId);
AT(graph_trace_offset::kStream, CUpti_ActivityGraphTrace2, streamId);
SAME(kGraphTraceBytes, sizeof(CUpti_ActivityGraphTrace));
SAME(kGraphTrace2Bytes, sizeof(CUpti_ActivityGraphTrace2));
AT(external_offset::kExternalKind, CUpti_ActivityExternalCorrelation, externalKind);
AT(external_offset::kExternalId, CUpti_ActivityExternalCorrelation, externalId);
AT(external_offset::kCorrelation, CUpti_ActivityExternalCorrelation, correlationId);
SAME(kExternalBytes, sizeof(CUpti_ActivityExternalCorrelation));
AT(context_offset::kContext, CUpti_ActivityContext3, contextId);
AT(context_offset::kDevice, CUpti_ActivityContext3, deviceId);
AT(context_offset::kNullStream, CUpti_ActivityContext3, nullStreamId);
AT(device_offset::kDevice, CUpti_ActivityDevice5, id);
AT(device_offset::kUuid, CUpti_ActivityDevice5, uuid);
AT(device_offset::kName, CUpti_ActivityDevice5, name);
AT(api_offset::kStart, CUpti_ActivityAPI, start);
AT(api_offset::kEnd, CUpti_ActivityAPI, end);
AT(api_offset::kProcess, CUpti_ActivityAPI, processId);
AT(api_offset::kThread, CUpti_ActivityAPI, threadId);
AT(api_offset::kCorrelation, CUpti_ActivityAPI, correlationId);
AT(api_offset::kReturn, CUpti_ActivityAPI, returnValue);
SAME(kApiBytes, sizeof(CUpti_ActivityAPI));
AT(overhead_offset::kOverheadKind, CUpti_ActivityOverhead3, overheadKind);
AT(overhead_offset::kStart, CUpti_ActivityOverhead3, start);
AT(overhead_offset::kEnd, CUpti_ActivityOverhead3, end);
AT(overhead_offset::kCorrelation, CUpti_ActivityOverhead3, correlationId);
FIELD(CallbackData, site, CUpti_CallbackData, callbackSite);
FIELD(CallbackData, function_name, CUpti_CallbackData, functionName);
FIELD(CallbackData, function_params, CUpti_CallbackData, functionParams);
FIELD(CallbackData, function_return, CUpti_CallbackData, functionReturnValue);
FIELD(CallbackData, symbol_name, CUpti_CallbackData, symbolName);
FIELD(CallbackData, context, CUpti_CallbackData, context);
FIELD(CallbackData, context_uid, CUpti_CallbackData, contextUid);
FIELD(CallbackData, correlation_data, CUpti_CallbackData, correlationData);
FIELD(CallbackData, correlation_id, CUpti_CallbackData, correlationId);
FIELD(ResourceData, context, CUpti_ResourceData, context);
FIELD(ResourceData, handle, CUpti_ResourceData, resourceHandle);
FIELD(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
FIELD(ModuleResourceData, module_id, CUpti_ModuleResourceData, moduleId);
FIELD(ModuleResourceData, cubin_size, CUpti_ModuleResourceData, cubinSize);
FIELD(ModuleResourceData, cubin, CUpti_ModuleResourceData, pCubin);
FIELD(GraphData, graph, CUpti_GraphData, graph);
FIELD(GraphData, original_graph, CUpti_GraphData, originalGraph);
FIELD(GraphData, node, CUpti_GraphData, node);
FIELD(GraphData, original_node, CUpti_GraphData, originalNode);
FIELD(GraphData, node_type, CUpti_GraphData, nodeType);
FIELD(GraphData, dependency, CUpti_GraphData, dependency);
FIELD(GraphData, graph_exec, CUpti_GraphData, graphExec);
FIELD(CubinCrcParameters, struct_bytes, CUpti_GetCubinCrcParams, size);
FIELD(CubinCrcParameters, cubin_size, CUpti_GetCubinCrcParams, cubinSize);
FIELD(CubinCrcParameters, cubin, CUpti_GetCubinCrcParams, cubin);
FIELD(CubinCrcParameters, crc, CUpti_GetCubinCrcParams, cubinCrc);
#ifdef CUpti_SubscriberParams_STRUCT_SIZE
// It grew in 13.2; the library uses the size that it is given.
START(SubscriberParameters, struct_bytes, CUpti_SubscriberParams, structSize);
START(SubscriberParameters, name, CUpti_SubscriberParams, subscriberName);
START(SubscriberParameters, old_name, CUpti_SubscriberParams, oldSubscriberName);
START(SubscriberParameters, old_name_bytes, CUpti_SubscriberParams, oldSubscriberSize);
#if CUPTI_API_VERSION >= 130300
START(SubscriberParameters, allows_several, CUpti_SubscriberParams, allowMultipleSubscribers);
static_assert(sizeof(SubscriberParameters) == CUpti_SubscriberParams_STRUCT_SIZE);
#endif
#endif
