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
using CreateContext = Status (*)(Handle *context);
using StartContext = Status (*)(Handle context);
using StopContext = Status (*)(Handle context);
using CreateBuffer = Status (*)(Handle context, size_t bytes, size_t watermark_bytes, int policy,
                                BufferCallback callback, void *user, Handle *buffer);
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
using GetStatusName = const char *(*)(Status status);
using GetStatusString = const char *(*)(Status status);
using GetVersion = Status (*)(uint32_t *major, uint32_t *minor, uint32_t *patch);
} // namespace function

} // namespace proton::rocprofiler

namespace proton {

/// Entry points by their names without "rocprofiler_" and "_service". Those below `optional` may be
/// null.
struct RocprofilerFunctions : SymbolTable {
  using SymbolTable::SymbolTable;

  rocprofiler::function::ForceConfigure force_configure = need("rocprofiler_force_configure");
  rocprofiler::function::IsInitialized is_initialized = need("rocprofiler_is_initialized");
  rocprofiler::function::CreateContext create_context = need("rocprofiler_create_context");
  rocprofiler::function::StartContext start_context = need("rocprofiler_start_context");
  rocprofiler::function::StopContext stop_context = need("rocprofiler_stop_context");
  rocprofiler::function::CreateBuffer create_buffer = need("rocprofiler_create_buffer");
  rocprofiler::function::FlushBuffer flush_buffer = need("rocprofiler_flush_buffer");
  rocprofiler::function::CreateCallbackThread create_callback_thread =
      need("rocprofiler_create_callback_thread");
  rocprofiler::function::AssignCallbackThread assign_callback_thread =
      need("rocprofiler_assign_callback_thread");
  rocprofiler::function::ConfigureCallbackTracing configure_callback_tracing =
      need("rocprofiler_configure_callback_tracing_service");
  rocprofiler::function::ConfigureBufferTracing configure_buffer_tracing =
      need("rocprofiler_configure_buffer_tracing_service");
  rocprofiler::function::ConfigureCorrelationRequest configure_correlation_request =
      need("rocprofiler_configure_external_correlation_id_request_service");
  rocprofiler::function::QueryAvailableAgents query_available_agents =
      need("rocprofiler_query_available_agents");
  rocprofiler::function::GetTimestamp get_timestamp = need("rocprofiler_get_timestamp");
  rocprofiler::function::GetStatusName get_status_name = find("rocprofiler_get_status_name");
  rocprofiler::function::GetStatusString get_status_string = find("rocprofiler_get_status_string");
  rocprofiler::function::GetVersion get_version = find("rocprofiler_get_version");
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
