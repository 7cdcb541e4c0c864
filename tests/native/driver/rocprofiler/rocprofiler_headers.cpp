// rocprofiler_abi.h and rocprofiler_library.h say what AMD's headers say, as
// far as Triton's wheel has them: it leaves out records of copies, streams and a few calls.
//
// Compiled, never run, by test_vendor_headers.py; no part of the native tests, because the headers
// need not be there.
#include "driver/rocprofiler/rocprofiler_library.h"

#include "driver/rocprofiler/rocprofiler_abi.h"

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/external_correlation.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/internal_threading.h>
#include <rocprofiler-sdk/marker/api_id.h>
#include <rocprofiler-sdk/registration.h>

#include "driver/hip/hip_driver.h"
#include "driver/vendor_checks.h"

#define STATUS(ours, theirs) SAME(ours, ROCPROFILER_STATUS_##theirs)
#define KIND(ours, theirs) SAME(ours, ROCPROFILER_##theirs)

using namespace proton::rocprofiler;

STATUS(kSuccess, SUCCESS);
STATUS(kError, ERROR);
STATUS(kErrorContextNotFound, ERROR_CONTEXT_NOT_FOUND);
STATUS(kErrorBufferNotFound, ERROR_BUFFER_NOT_FOUND);
STATUS(kErrorContextConflict, ERROR_CONTEXT_CONFLICT);
STATUS(kErrorBufferBusy, ERROR_BUFFER_BUSY);
STATUS(kErrorServiceAlreadyConfigured, ERROR_SERVICE_ALREADY_CONFIGURED);
STATUS(kErrorConfigurationLocked, ERROR_CONFIGURATION_LOCKED);
STATUS(kErrorNotImplemented, ERROR_NOT_IMPLEMENTED);
STATUS(kErrorIncompatibleAbi, ERROR_INCOMPATIBLE_ABI);
STATUS(kErrorInvalidArgument, ERROR_INVALID_ARGUMENT);
STATUS(kErrorFinalized, ERROR_FINALIZED);
STATUS(kErrorIncompatibleKernel, ERROR_INCOMPATIBLE_KERNEL);
STATUS(kErrorOutOfResources, ERROR_OUT_OF_RESOURCES);
STATUS(kErrorPermissionDenied, ERROR_PERMISSION_DENIED);
STATUS(kErrorIncompatibleRegisterVersion, ERROR_INCOMPATIBLE_REGISTER_VERSION);
KIND(kCategoryTracing, BUFFER_CATEGORY_TRACING);
KIND(kPhaseNone, CALLBACK_PHASE_NONE);
KIND(kEnter, CALLBACK_PHASE_ENTER);
KIND(kExit, CALLBACK_PHASE_EXIT);
KIND(kLoad, CALLBACK_PHASE_LOAD);
KIND(kUnload, CALLBACK_PHASE_UNLOAD);
KIND(kCallbackHipRuntimeApi, CALLBACK_TRACING_HIP_RUNTIME_API);
KIND(kCallbackMarkerCoreApi, CALLBACK_TRACING_MARKER_CORE_API);
KIND(kCallbackCodeObject, CALLBACK_TRACING_CODE_OBJECT);
KIND(kBufferMemoryCopy, BUFFER_TRACING_MEMORY_COPY);
KIND(kBufferKernelDispatch, BUFFER_TRACING_KERNEL_DISPATCH);
KIND(kPolicyDiscard, BUFFER_POLICY_DISCARD);
KIND(kPolicyLossless, BUFFER_POLICY_LOSSLESS);
KIND(kRequestMemoryCopy, EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY);
KIND(kRequestKernelDispatch, EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH);
KIND(kKernelSymbolRegister, CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER);
KIND(kStreamCreate, HIP_STREAM_CREATE);
KIND(kStreamDestroy, HIP_STREAM_DESTROY);
KIND(kStreamSet, HIP_STREAM_SET);
KIND(kDispatchEnqueue, KERNEL_DISPATCH_ENQUEUE);
KIND(kDispatchComplete, KERNEL_DISPATCH_COMPLETE);
KIND(kCopyHostToHost, MEMORY_COPY_HOST_TO_HOST);
KIND(kCopyHostToDevice, MEMORY_COPY_HOST_TO_DEVICE);
KIND(kCopyDeviceToHost, MEMORY_COPY_DEVICE_TO_HOST);
KIND(kCopyDeviceToDevice, MEMORY_COPY_DEVICE_TO_DEVICE);
KIND(kAgentCpu, AGENT_TYPE_CPU);
KIND(kAgentGpu, AGENT_TYPE_GPU);
KIND(kAgentVersion0, AGENT_INFO_VERSION_0);
SAME(proton::roctx::kMark, ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA);
SAME(proton::roctx::kRangePush, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA);
SAME(proton::roctx::kRangePop, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop);
SAME(proton::roctx::kRangeStart, ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA);
SAME(proton::roctx::kRangeStop, ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop);

SAME(sizeof(Handle), sizeof(rocprofiler_context_id_t));
SAME(sizeof(Handle), sizeof(rocprofiler_buffer_id_t));
SAME(sizeof(Handle), sizeof(rocprofiler_callback_thread_t));
SAME(sizeof(UserValue), sizeof(rocprofiler_user_data_t));
FIELD(CorrelationId, internal, rocprofiler_correlation_id_t, internal);
FIELD(CorrelationId, external, rocprofiler_correlation_id_t, external);
FIELD(CorrelationId, ancestor, rocprofiler_correlation_id_t, ancestor);
FIELD(AsyncCorrelationId, internal, rocprofiler_async_correlation_id_t, internal);
FIELD(AsyncCorrelationId, external, rocprofiler_async_correlation_id_t, external);
FIELD(CallbackRecord, context, rocprofiler_callback_tracing_record_t, context_id);
FIELD(CallbackRecord, thread, rocprofiler_callback_tracing_record_t, thread_id);
FIELD(CallbackRecord, correlation, rocprofiler_callback_tracing_record_t, correlation_id);
FIELD(CallbackRecord, kind, rocprofiler_callback_tracing_record_t, kind);
FIELD(CallbackRecord, operation, rocprofiler_callback_tracing_record_t, operation);
FIELD(CallbackRecord, phase, rocprofiler_callback_tracing_record_t, phase);
FIELD(CallbackRecord, payload, rocprofiler_callback_tracing_record_t, payload);
FIELD(RecordHeader, category, rocprofiler_record_header_t, category);
FIELD(RecordHeader, kind, rocprofiler_record_header_t, kind);
FIELD(RecordHeader, payload, rocprofiler_record_header_t, payload);
FIELD(DispatchInfo, agent, rocprofiler_kernel_dispatch_info_t, agent_id);
FIELD(DispatchInfo, queue, rocprofiler_kernel_dispatch_info_t, queue_id);
FIELD(DispatchInfo, kernel, rocprofiler_kernel_dispatch_info_t, kernel_id);
FIELD(DispatchInfo, dispatch, rocprofiler_kernel_dispatch_info_t, dispatch_id);
FIELD(DispatchInfo, private_segment_bytes, rocprofiler_kernel_dispatch_info_t,
      private_segment_size);
FIELD(DispatchInfo, group_segment_bytes, rocprofiler_kernel_dispatch_info_t, group_segment_size);
FIELD(DispatchInfo, block, rocprofiler_kernel_dispatch_info_t, workgroup_size);
FIELD(DispatchInfo, work_items, rocprofiler_kernel_dispatch_info_t, grid_size);
FIELD(DispatchRecord, kind, rocprofiler_buffer_tracing_kernel_dispatch_record_t, kind);
FIELD(DispatchRecord, operation, rocprofiler_buffer_tracing_kernel_dispatch_record_t, operation);
FIELD(DispatchRecord, correlation, rocprofiler_buffer_tracing_kernel_dispatch_record_t,
      correlation_id);
FIELD(DispatchRecord, thread, rocprofiler_buffer_tracing_kernel_dispatch_record_t, thread_id);
FIELD(DispatchRecord, start_ns, rocprofiler_buffer_tracing_kernel_dispatch_record_t,
      start_timestamp);
FIELD(DispatchRecord, end_ns, rocprofiler_buffer_tracing_kernel_dispatch_record_t, end_timestamp);
FIELD(DispatchRecord, dispatch, rocprofiler_buffer_tracing_kernel_dispatch_record_t, dispatch_info);
#define SYMBOL(ours, theirs)                                                                       \
  FIELD(KernelSymbolData, ours,                                                                    \
        rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t, theirs)
SYMBOL(kernel, kernel_id);
SYMBOL(code_object, code_object_id);
SYMBOL(name, kernel_name);
SYMBOL(kernel_object, kernel_object);
SYMBOL(kernarg_bytes, kernarg_segment_size);
SYMBOL(group_segment_bytes, group_segment_size);
SYMBOL(private_segment_bytes, private_segment_size);
SYMBOL(scalar_registers, sgpr_count);
SYMBOL(vector_registers, arch_vgpr_count);
SYMBOL(accumulation_registers, accum_vgpr_count);
SYMBOL(entry_offset, kernel_code_entry_byte_offset);
SYMBOL(address, kernel_address);
#define CODE(ours, theirs)                                                                         \
  FIELD(CodeObjectData, ours, rocprofiler_callback_tracing_code_object_load_data_t, theirs)
CODE(code_object, code_object_id);
CODE(agent, agent_id);
CODE(hsa_agent, hsa_agent);
CODE(uri, uri);
CODE(load_base, load_base);
CODE(load_bytes, load_size);
CODE(load_delta, load_delta);
CODE(storage, storage_type);
CODE(memory_base, memory_base);
CODE(memory_bytes, memory_size);
START(MarkerData, message, rocprofiler_callback_tracing_marker_api_data_t,
      args.roctxRangePushA.message);
START(MarkerData, message, rocprofiler_callback_tracing_marker_api_data_t,
      args.roctxRangeStartA.message);
START(MarkerData, range_id, rocprofiler_callback_tracing_marker_api_data_t, args.roctxRangeStop.id);
FIELD(MarkerData, answer, rocprofiler_callback_tracing_marker_api_data_t, retval);
FIELD(ClientId, name, rocprofiler_client_id_t, name);
FIELD(ClientId, handle, rocprofiler_client_id_t, handle);
FIELD(ConfigureResult, initialize, rocprofiler_tool_configure_result_t, initialize);
FIELD(ConfigureResult, finalize, rocprofiler_tool_configure_result_t, finalize);
FIELD(ConfigureResult, tool, rocprofiler_tool_configure_result_t, tool_data);

#define AGENT(ours, theirs) AT(agent_offset::ours, rocprofiler_agent_v0_t, theirs)
AGENT(kSize, size);
AGENT(kId, id);
AGENT(kType, type);
AGENT(kWaveSize, wave_front_size);
AGENT(kComputeUnits, cu_count);
AGENT(kGfxVersion, gfx_target_version);
AGENT(kLocation, location_id);
AGENT(kPciDomain, domain);
AGENT(kMaxClockMhz, max_engine_clk_fcompute);
AGENT(kGpuId, gpu_id);
AGENT(kName, name);
AGENT(kProduct, product_name);
AGENT(kNode, node_id);
AGENT(kLogicalNode, logical_node_id);
AGENT(kLogicalNodeOfType, logical_node_type_id);
AGENT(kRuntimeVisibility, runtime_visibility);
AGENT(kUuid, uuid);
SAME(kAgentBytes, sizeof(rocprofiler_agent_v0_t));
AT(memory_bank_offset::kWidthBits, rocprofiler_agent_mem_bank_t, width);
AT(memory_bank_offset::kMaxClockMhz, rocprofiler_agent_mem_bank_t, mem_clk_max);
AT(memory_bank_offset::kBytes, rocprofiler_agent_mem_bank_t, size_in_bytes);
SAME(kMemoryBankBytes, sizeof(rocprofiler_agent_mem_bank_t));

#define CALLBACK(ours, theirs) static_assert(SameCall<ours, theirs>::value)
CALLBACK(ToolInitialize, rocprofiler_tool_initialize_t);
CALLBACK(ToolFinalize, rocprofiler_tool_finalize_t);
CALLBACK(Configure, rocprofiler_configure_func_t);
CALLBACK(TracingCallback, rocprofiler_callback_tracing_cb_t);
CALLBACK(BufferCallback, rocprofiler_buffer_tracing_cb_t);
CALLBACK(CorrelationRequest, rocprofiler_external_correlation_id_request_cb_t);
CALLBACK(AgentsCallback, rocprofiler_query_available_agents_cb_t);
SAME_CALL(ForceConfigure, rocprofiler_force_configure);
SAME_CALL(IsInitialized, rocprofiler_is_initialized);
SAME_CALL(CreateBuffer, rocprofiler_create_buffer);
SAME_CALL(FlushBuffer, rocprofiler_flush_buffer);
SAME_CALL(CreateCallbackThread, rocprofiler_create_callback_thread);
SAME_CALL(AssignCallbackThread, rocprofiler_assign_callback_thread);
SAME_CALL(ConfigureCallbackTracing, rocprofiler_configure_callback_tracing_service);
SAME_CALL(ConfigureBufferTracing, rocprofiler_configure_buffer_tracing_service);
SAME_CALL(ConfigureCorrelationRequest,
          rocprofiler_configure_external_correlation_id_request_service);
SAME_CALL(QueryAvailableAgents, rocprofiler_query_available_agents);
