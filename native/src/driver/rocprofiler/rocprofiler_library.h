// librocprofiler-sdk opened at run time: its entry points, version and what its errors mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/rocprofiler/rocprofiler_abi.h"
#include "driver/shared_library.h"

namespace proton::rocprofiler {

// Types of rocprofiler-sdk's entry points, by their names; see
// driver/rocprofiler/rocprofiler_abi.h.

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
/// (driver/rocprofiler/rocprofiler_abi.h).
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

namespace proton {

/// Entry points by their names without "rocprofiler_" and "_service". Those below `optional` may be
/// null.
struct RocprofilerFunctions {
  rocprofiler::function::ForceConfigure force_configure = nullptr;
  rocprofiler::function::IsInitialized is_initialized = nullptr;
  rocprofiler::function::CreateContext create_context = nullptr;
  rocprofiler::function::StartContext start_context = nullptr;
  rocprofiler::function::StopContext stop_context = nullptr;
  rocprofiler::function::ContextIsValid context_is_valid = nullptr;
  rocprofiler::function::CreateBuffer create_buffer = nullptr;
  rocprofiler::function::DestroyBuffer destroy_buffer = nullptr;
  rocprofiler::function::FlushBuffer flush_buffer = nullptr;
  rocprofiler::function::CreateCallbackThread create_callback_thread = nullptr;
  rocprofiler::function::AssignCallbackThread assign_callback_thread = nullptr;
  rocprofiler::function::ConfigureCallbackTracing configure_callback_tracing = nullptr;
  rocprofiler::function::ConfigureBufferTracing configure_buffer_tracing = nullptr;
  rocprofiler::function::ConfigureCorrelationRequest configure_correlation_request = nullptr;
  rocprofiler::function::QueryAvailableAgents query_available_agents = nullptr;
  rocprofiler::function::GetTimestamp get_timestamp = nullptr;
  // optional
  rocprofiler::function::GetStatusName get_status_name = nullptr;
  rocprofiler::function::GetStatusString get_status_string = nullptr;
  rocprofiler::function::GetVersion get_version = nullptr;
  rocprofiler::function::IsFinalized is_finalized = nullptr;
  rocprofiler::function::ContextIsActive context_is_active = nullptr;
  rocprofiler::function::GetThreadId get_thread_id = nullptr;
};

class RocprofilerLibrary {
public:
  /// Opens the first candidate that loads, after librocprofiler-register beside it, both with
  /// global symbols: HIP and ROCr find the profiler that way. Throws Error(kUnavailable) when there
  /// is none, when it lacks an entry point that is needed, or when it is older than 1.0.
  static RocprofilerLibrary open(const std::vector<LibraryCandidate> &candidates);

  const RocprofilerFunctions &functions() const { return functions_; }
  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  /// E.g. "1.2.1"; empty where the library does not say.
  std::string version() const;

  /// "ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED (16)".
  std::string describe(rocprofiler::Status status) const;
  /// Throws Error(kUnavailable) for every status but success: what failed, why, what to do.
  void check(rocprofiler::Status status, const char *function) const;

private:
  SharedLibrary register_;
  SharedLibrary library_;
  RocprofilerFunctions functions_;
};

} // namespace proton
