#include "driver/rocprofiler/rocprofiler_library.h"

#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kRocprofilerAdvice =
    "install rocprofiler-sdk of ROCm 7.0 or later, name a "
    "librocprofiler-sdk by PROTON_BENCH_ROCPROFILER_LIB, or use the "
    "backend roctracer";
constexpr const char *kRegisterNames[] = {"librocprofiler-register.so.0",
                                          "librocprofiler-register.so"};

/// What a status means to a user, and what to do about it.
const char *rocprofiler_advice(rocprofiler::Status status) {
  switch (status) {
  case rocprofiler::kErrorConfigurationLocked:
    return "HIP has started, or another tool has registered with rocprofiler-sdk, before the "
           "backend was asked for: run the program by `proton run -b rocprofiler PROGRAM`, or "
           "start the session before the first use of the GPU";
  case rocprofiler::kErrorContextConflict:
    return "another profiler of this process (torch.profiler, rocprofv3, upstream's proton) uses "
           "rocprofiler-sdk: end that one first";
  case rocprofiler::kErrorIncompatibleKernel:
    return "the amdgpu driver is too old for this rocprofiler-sdk: update it, or use the backend "
           "roctracer";
  case rocprofiler::kErrorIncompatibleRegisterVersion:
    return "librocprofiler-register is of another ROCm release: let both come from one "
           "installation, or name the other by PROTON_BENCH_ROCPROFILER_LIB";
  case rocprofiler::kErrorIncompatibleAbi:
    return "this release is not known: name another one by PROTON_BENCH_ROCPROFILER_LIB, or use "
           "the "
           "backend roctracer";
  case rocprofiler::kErrorPermissionDenied:
    return "this user may not profile: check the groups render and video";
  case rocprofiler::kErrorOutOfResources:
    return "there is too little memory for its buffers: free some";
  case rocprofiler::kErrorFinalized:
    return "rocprofiler-sdk has ended in this process, and does not start again";
  default:
    return "name another librocprofiler-sdk by PROTON_BENCH_ROCPROFILER_LIB, or use the backend "
           "roctracer";
  }
}

/// The library that HIP and ROCr register with must be the one of the same installation.
SharedLibrary open_register(const std::vector<LibraryCandidate> &candidates) {
  std::vector<LibraryCandidate> places;
  for (const LibraryCandidate &candidate : candidates) {
    size_t slash = candidate.path.rfind('/');
    if (candidate.only_if_loaded || slash == std::string::npos)
      continue;
    for (const char *name : kRegisterNames)
      places.push_back({candidate.path.substr(0, slash + 1) + name, candidate.origin, false, true});
  }
  for (const char *name : kRegisterNames)
    places.push_back({name, "search of the system", false, true});
  try {
    return SharedLibrary::open("librocprofiler-register", places, "");
  } catch (const Error &) { // where it is missing HIP starts without, and we only see no kernels
    return {};
  }
}

} // namespace

RocprofilerLibrary RocprofilerLibrary::open(const std::vector<LibraryCandidate> &candidates) {
  RocprofilerLibrary sdk;
  std::vector<LibraryCandidate> visible = candidates;
  for (LibraryCandidate &candidate : visible)
    candidate.is_global = true;
  sdk.register_ = open_register(candidates);
  sdk.library_ = SharedLibrary::open("librocprofiler-sdk", visible, kRocprofilerAdvice);
  const SharedLibrary &library = sdk.library_;
  sdk.functions_ = RocprofilerFunctions(library);
  sdk.functions_.check(library, kRocprofilerAdvice);
  const RocprofilerFunctions &to = sdk.functions_;
  uint32_t major = 1;
  if (to.get_version && to.get_version(&major, nullptr, nullptr) == rocprofiler::kSuccess &&
      major < 1)
    throw Error(ErrorCode::kUnavailable, library.path() + " is rocprofiler-sdk " + sdk.version() +
                                             ", and 1.0 is the oldest that is supported; " +
                                             kRocprofilerAdvice);
  return sdk;
}

std::string RocprofilerLibrary::version() const {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;
  if (!functions_.get_version ||
      functions_.get_version(&major, &minor, &patch) != rocprofiler::kSuccess)
    return {};
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string RocprofilerLibrary::describe(rocprofiler::Status status) const {
  const char *name = functions_.get_status_name ? functions_.get_status_name(status) : nullptr;
  std::string text = (name ? name : "error") + std::string(" (") + std::to_string(status) + ")";
  const char *more = functions_.get_status_string ? functions_.get_status_string(status) : nullptr;
  return more && *more ? text + ": " + more : text;
}

void RocprofilerLibrary::check(rocprofiler::Status status, const char *function) const {
  if (status != rocprofiler::kSuccess)
    throw Error(ErrorCode::kUnavailable, std::string(function) + " of " + path() + " failed: " +
                                             describe(status) + "; " + rocprofiler_advice(status));
}

} // namespace proton
