// Types of rocprofiler-sdk's entry points, by their names; see
// driver/rocprofiler/rocprofiler_abi.h.
#pragma once

#include "driver/rocprofiler/rocprofiler_abi.h"

namespace proton::rocprofiler {

struct ClientId { // rocprofiler_client_id_t; the library's, its handle must not be written
  size_t size;
  const char *name;
  uint32_t handle;
};

extern "C" {
using ClientFinalize = void (*)(ClientId client); ///< ends our client at once
/// Makes contexts and services; anything but 0 drops them all.
using ToolInitialize = int (*)(ClientFinalize finalize, void *tool);
using ToolFinalize = void (*)(void *tool);
}

struct ConfigureResult { // rocprofiler_tool_configure_result_t
  size_t size = sizeof(ConfigureResult);
  ToolInitialize initialize = nullptr;
  ToolFinalize finalize = nullptr;
  void *tool = nullptr;
};

extern "C" {
/// Our rocprofiler_configure; null says that we do not want to take part.
using Configure = ConfigureResult *(*)(uint32_t version, const char *runtime_version,
                                       uint32_t priority, ClientId *client);
/// [the calling thread of the API] `user` is kept from enter to exit.
using TracingCallback = void (*)(CallbackRecord record, UserValue *user, void *callback_user);
/// [the buffer's callback thread, or one that flushes] `dropped` counts records that are lost.
using BufferCallback = void (*)(Handle context, Handle buffer, RecordHeader **headers, size_t count,
                                void *user, uint64_t dropped);
/// [thread that dispatches] Sets the external correlation; 0 accepts it.
using CorrelationRequest = int (*)(uint64_t thread, Handle context, int kind, int operation,
                                   uint64_t internal, UserValue *external, void *user);
/// `agents` is a list of pointers to rocprofiler_agent_v0_t
/// (driver/rocprofiler/rocprofiler_agent.h).
using AgentsCallback = Status (*)(int version, const void **agents, size_t count, void *user);
}

namespace function {
using ForceConfigure = Status (*)(Configure configure);
using IsInitialized = Status (*)(int *status); ///< 0 not yet, 1 done, -1 now
using IsFinalized = Status (*)(int *status);
using CreateContext = Status (*)(Handle *context);
using DestroyContext = Status (*)(Handle context);
using ContextIsValid = Status (*)(Handle context, int *is_valid);
using ContextIsActive = Status (*)(Handle context, int *is_active);
using StartContext = Status (*)(Handle context);
using StopContext = Status (*)(Handle context);
using CreateBuffer = Status (*)(Handle context, size_t bytes, size_t watermark_bytes, int policy,
                                BufferCallback callback, void *user, Handle *buffer);
using DestroyBuffer = Status (*)(Handle buffer);
using FlushBuffer = Status (*)(Handle buffer);
using CreateCallbackThread = Status (*)(Handle *thread);
using AssignCallbackThread = Status (*)(Handle buffer, Handle thread);
/// `operations` null and 0: all of the kind.
using ConfigureCallbackTracing = Status (*)(Handle context, int kind, const int *operations,
                                            size_t count, TracingCallback callback, void *user);
using ConfigureBufferTracing = Status (*)(Handle context, int kind, const int *operations,
                                          size_t count, Handle buffer);
using ConfigureCorrelationRequest = Status (*)(Handle context, const int *kinds, size_t count,
                                               CorrelationRequest request, void *user);
using QueryAvailableAgents = Status (*)(int version, AgentsCallback callback, size_t agent_bytes,
                                        void *user);
using GetTimestamp = Status (*)(uint64_t *ns);
using GetThreadId = Status (*)(uint64_t *thread);
using GetStatusName = const char *(*)(Status status);
using GetStatusString = const char *(*)(Status status);
using GetVersion = Status (*)(uint32_t *major, uint32_t *minor, uint32_t *patch);
} // namespace function

} // namespace proton::rocprofiler
