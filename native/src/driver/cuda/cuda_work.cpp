#include "driver/cuda/cuda_work.h"

#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kWorkAdvice = "install NVIDIA's driver of CUDA 11.3 or later, or run in a "
                                    "container that was given it (docker run --gpus all)";

/// Resolves what is needed; the first name that is missing, or null.
const char *resolve_needed(const SharedLibrary &library, CudaWorkFunctions &to) {
  const char *missing = nullptr;
  auto need = [&](const char *name, auto &function) {
    if (!library.resolve(name, function) && !missing)
      missing = name;
  };
  need("cuCtxGetCurrent", to.ctx_get_current);
  need("cuCtxGetDevice", to.ctx_get_device);
  need("cuCtxPushCurrent_v2", to.ctx_push_current);
  need("cuCtxPopCurrent_v2", to.ctx_pop_current);
  need("cuCtxSynchronize", to.ctx_synchronize);
  need("cuDeviceGetAttribute", to.device_get_attribute);
  need("cuModuleLoadData", to.module_load_data);
  need("cuModuleUnload", to.module_unload);
  need("cuModuleGetFunction", to.module_get_function);
  need("cuLaunchKernel", to.launch_kernel);
  need("cuMemAlloc_v2", to.mem_alloc);
  need("cuMemFree_v2", to.mem_free);
  need("cuMemHostAlloc", to.mem_host_alloc);
  need("cuMemFreeHost", to.mem_free_host);
  need("cuMemsetD8Async", to.memset_d8_async);
  need("cuMemcpyDtoHAsync_v2", to.memcpy_dtoh_async);
  need("cuStreamCreate", to.stream_create);
  need("cuStreamDestroy_v2", to.stream_destroy);
  need("cuStreamSynchronize", to.stream_synchronize);
  need("cuStreamWaitEvent", to.stream_wait_event);
  need("cuEventCreate", to.event_create);
  need("cuEventDestroy_v2", to.event_destroy);
  need("cuEventRecord", to.event_record);
  need("cuEventQuery", to.event_query);
  need("cuEventSynchronize", to.event_synchronize);
  return missing;
}

} // namespace

CudaWork CudaWork::open() {
  CudaWork work;
  work.library_ = SharedLibrary::open("NVIDIA's driver", {{"libcuda.so.1", "system"}}, kWorkAdvice);
  const SharedLibrary &library = work.library_;
  CudaWorkFunctions &to = work.functions_;
  if (const char *missing = resolve_needed(library, to))
    throw Error(ErrorCode::kUnavailable, library.path() + " lacks " + missing + "; " + kWorkAdvice);
  library.resolve("cuDevicePrimaryCtxRetain", to.device_primary_ctx_retain);
  library.resolve("cuCtxSetCurrent", to.ctx_set_current);
  library.resolve("cuStreamIsCapturing", to.stream_is_capturing);
  library.resolve("cuStreamGetCaptureInfo_v2", to.stream_get_capture_info);
  library.resolve("cuStreamGetId", to.stream_get_id);
  library.resolve("cuThreadExchangeStreamCaptureMode", to.exchange_capture_mode);
  library.resolve("cuGetErrorName", to.get_error_name);
  return work;
}

std::string CudaWork::describe(cuda::Result result) const {
  const char *name = nullptr;
  if (functions_.get_error_name)
    functions_.get_error_name(result, &name);
  return std::string(name ? name : "CUDA error") + " (" + std::to_string(result) + ")";
}

void CudaWork::check(cuda::Result result, const char *function, const std::string &purpose) const {
  if (result == cuda::kSuccess)
    return;
  std::string advice = result == cuda::kErrorOutOfMemory
                           ? "; free memory of the device, or record fewer warps or programs"
                           : "";
  throw Error(ErrorCode::kUnavailable,
              purpose + " failed: " + function + " answered " + describe(result) + advice);
}

CurrentContext::CurrentContext(const CudaWorkFunctions &functions, void *context) noexcept
    : functions_(functions),
      holds_(context && functions.ctx_push_current(context) == cuda::kSuccess) {}

CurrentContext::~CurrentContext() {
  void *popped = nullptr;
  if (holds_)
    functions_.ctx_pop_current(&popped);
}

RelaxedCapture::RelaxedCapture(const CudaWorkFunctions &functions) noexcept
    : functions_(functions) {
  is_exchanged_ =
      functions.exchange_capture_mode && functions.exchange_capture_mode(&mode_) == cuda::kSuccess;
}

RelaxedCapture::~RelaxedCapture() {
  if (is_exchanged_)
    functions_.exchange_capture_mode(&mode_);
}

} // namespace proton
