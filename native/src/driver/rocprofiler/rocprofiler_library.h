// librocprofiler-sdk opened at run time: its entry points, version and what its errors mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/rocprofiler/rocprofiler_functions.h"
#include "driver/shared_library.h"

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
