// Entry points of libcuda for work of our own on the device: memory, copies, kernels, events.
#pragma once

#include <string>

#include "driver/cuda/cuda_abi.h"
#include "driver/shared_library.h"

namespace proton {

/// Entry points by their names without "cu". Those below `optional` may be null.
struct CudaWorkFunctions {
  cuda::function::CtxGetCurrent ctx_get_current = nullptr;
  cuda::function::CtxGetDevice ctx_get_device = nullptr;
  cuda::function::CtxPushCurrent ctx_push_current = nullptr;
  cuda::function::CtxPopCurrent ctx_pop_current = nullptr;
  cuda::function::CtxSynchronize ctx_synchronize = nullptr;
  cuda::function::DeviceGetAttribute device_get_attribute = nullptr;
  cuda::function::ModuleLoadData module_load_data = nullptr;
  cuda::function::ModuleUnload module_unload = nullptr;
  cuda::function::ModuleGetFunction module_get_function = nullptr;
  cuda::function::LaunchKernel launch_kernel = nullptr;
  cuda::function::MemAlloc mem_alloc = nullptr;
  cuda::function::MemFree mem_free = nullptr;
  cuda::function::MemHostAlloc mem_host_alloc = nullptr;
  cuda::function::MemFreeHost mem_free_host = nullptr;
  cuda::function::MemsetD8Async memset_d8_async = nullptr;
  cuda::function::MemcpyDtoHAsync memcpy_dtoh_async = nullptr;
  cuda::function::StreamCreate stream_create = nullptr;
  cuda::function::StreamDestroy stream_destroy = nullptr;
  cuda::function::StreamSynchronize stream_synchronize = nullptr;
  cuda::function::StreamWaitEvent stream_wait_event = nullptr;
  cuda::function::EventCreate event_create = nullptr;
  cuda::function::EventDestroy event_destroy = nullptr;
  cuda::function::EventRecord event_record = nullptr;
  cuda::function::EventQuery event_query = nullptr;
  cuda::function::EventSynchronize event_synchronize = nullptr;
  // optional
  cuda::function::DevicePrimaryCtxRetain device_primary_ctx_retain = nullptr;
  cuda::function::CtxSetCurrent ctx_set_current = nullptr;
  cuda::function::StreamIsCapturing stream_is_capturing = nullptr;
  cuda::function::StreamGetCaptureInfo stream_get_capture_info = nullptr;
  cuda::function::StreamGetId stream_get_id = nullptr;
  cuda::function::ThreadExchangeStreamCaptureMode exchange_capture_mode = nullptr;
  cuda::function::GetErrorName get_error_name = nullptr;
};

class CudaWork {
public:
  /// Throws Error(kUnavailable) where there is no driver or it lacks an entry point.
  static CudaWork open();

  const CudaWorkFunctions &functions() const { return functions_; }
  /// "CUDA_ERROR_OUT_OF_MEMORY (2)".
  std::string describe(cuda::Result result) const;
  /// Throws Error(kUnavailable) for every result but success: which call failed, while doing what.
  void check(cuda::Result result, const char *function, const std::string &purpose) const;

private:
  SharedLibrary library_;
  CudaWorkFunctions functions_;
};

/// Makes a context current while it lives. A null context changes nothing.
class CurrentContext {
public:
  CurrentContext(const CudaWorkFunctions &functions, void *context) noexcept;
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;
  /// False where the context is gone.
  bool holds() const { return holds_; }

private:
  const CudaWorkFunctions &functions_;
  bool holds_;
};

/// Lets the calling thread allocate and wait although some thread captures a graph.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const CudaWorkFunctions &functions) noexcept;
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  const CudaWorkFunctions &functions_;
  int mode_ = cuda::kCaptureModeRelaxed;
  bool is_exchanged_ = false;
};

} // namespace proton
