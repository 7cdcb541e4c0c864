#include "driver/roctracer/roctracer_library.h"

#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kRoctracerAdvice =
    "install roctracer of ROCm 6.0 or later, name a libroctracer64 by "
    "PROTON_BENCH_ROCTRACER_LIB, or use the backend rocprofiler";

const char *name_of(roctracer::Status status) {
  switch (status) {
  case roctracer::kError:
    return "ROCTRACER_STATUS_ERROR";
  case roctracer::kErrorInvalidDomain:
    return "ROCTRACER_STATUS_ERROR_INVALID_DOMAIN_ID";
  case roctracer::kErrorInvalidArgument:
    return "ROCTRACER_STATUS_ERROR_INVALID_ARGUMENT";
  case roctracer::kErrorDefaultPoolUndefined:
    return "ROCTRACER_STATUS_ERROR_DEFAULT_POOL_UNDEFINED";
  case roctracer::kErrorDefaultPoolAlreadyDefined:
    return "ROCTRACER_STATUS_ERROR_DEFAULT_POOL_ALREADY_DEFINED";
  case roctracer::kErrorMemoryAllocation:
    return "ROCTRACER_STATUS_ERROR_MEMORY_ALLOCATION";
  case roctracer::kErrorMismatchedExternalCorrelation:
    return "ROCTRACER_STATUS_ERROR_MISMATCHED_EXTERNAL_CORRELATION_ID";
  case roctracer::kErrorNotImplemented:
    return "ROCTRACER_STATUS_ERROR_NOT_IMPLEMENTED";
  case roctracer::kUninitialized:
    return "ROCTRACER_STATUS_UNINIT";
  case roctracer::kBreak:
    return "ROCTRACER_STATUS_BREAK";
  case roctracer::kErrorHipApi:
    return "ROCTRACER_STATUS_HIP_API_ERR";
  case roctracer::kErrorHipOps:
    return "ROCTRACER_STATUS_HIP_OPS_ERR";
  case roctracer::kErrorRoctx:
    return "ROCTRACER_STATUS_ROCTX_ERR";
  default:
    return "error";
  }
}

/// What a status means to a user, and what to do about it.
const char *roctracer_advice(roctracer::Status status) {
  switch (status) {
  case roctracer::kErrorDefaultPoolAlreadyDefined:
    return "another profiler of this process (torch.profiler, rocprof, upstream's proton) uses "
           "roctracer: end that one first";
  case roctracer::kErrorMemoryAllocation:
    return "there is too little memory for its buffers: free some";
  default:
    return "name another libroctracer64 by PROTON_BENCH_ROCTRACER_LIB, or use the backend "
           "rocprofiler";
  }
}

} // namespace

RoctracerLibrary RoctracerLibrary::open(const std::vector<LibraryCandidate> &candidates) {
  RoctracerLibrary tracer;
  tracer.library_ = SharedLibrary::open("libroctracer64", candidates, kRoctracerAdvice);
  const SharedLibrary &library = tracer.library_;
  tracer.functions_ = RoctracerFunctions(library);
  tracer.functions_.check(library, kRoctracerAdvice);
  const RoctracerFunctions &to = tracer.functions_;
  bool is_old =
      to.version_major && to.version_minor && 100 * to.version_major() + to.version_minor() < 401;
  if (is_old)
    throw Error(ErrorCode::kUnavailable, library.path() + " is roctracer " + tracer.version() +
                                             ", and 4.1 is the oldest that is supported; " +
                                             kRoctracerAdvice);
  return tracer;
}

std::string RoctracerLibrary::version() const {
  if (!functions_.version_major || !functions_.version_minor)
    return {};
  return std::to_string(functions_.version_major()) + "." +
         std::to_string(functions_.version_minor());
}

std::string RoctracerLibrary::describe(roctracer::Status status) const {
  std::string text = std::string(name_of(status)) + " (" + std::to_string(status) + ")";
  const char *more = functions_.error_string ? functions_.error_string() : nullptr;
  return more && *more ? text + ": " + more : text;
}

void RoctracerLibrary::check(roctracer::Status status, const char *function) const {
  if (status != roctracer::kSuccess)
    throw Error(ErrorCode::kUnavailable, std::string(function) + " of " + path() + " failed: " +
                                             describe(status) + "; " + roctracer_advice(status));
}

} // namespace proton
