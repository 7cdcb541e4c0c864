// libcuda opened at run time: the few calls a profiler makes itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "driver/cuda/cuda_abi.h"
#include "driver/shared_library.h"

namespace proton {

// Names of the kernels in a cubin.

/// The kernels of an ELF image, by their sections ".text.<kernel>"; empty for other bytes. The
/// names point into the image.
std::vector<std::string_view> kernels_of_cubin(const char *image, size_t bytes);

/// What the driver says of a device; 0 and "" where it does not answer.
struct CudaDeviceFacts {
  std::string name;
  std::string uuid;   ///< "GPU-xxxxxxxx-xxxx-..."
  int capability = 0; ///< 10 * major + minor
  int64_t multiprocessors = 0;
  int64_t clock_rate_khz = 0;
  int64_t memory_clock_rate_khz = 0;
  int64_t bus_width_bits = 0;
};

class CudaDriver {
public:
  /// Throws Error(kUnavailable) where there is no driver or it lacks an entry point.
  static CudaDriver open();

  /// Call before anything of CUDA in a process that does not use it otherwise. Throws
  /// Error(kUnavailable).
  void initialize() const;
  /// E.g. "13.0"; empty when the driver does not answer.
  std::string version() const;
  CudaDeviceFacts device(int ordinal) const;
  /// Of the device with this UUID; -1: the process has none.
  int ordinal_of(const std::string &uuid) const;
  /// Waits for all work of the context; the calling thread's current context stays as it was.
  cuda::Result synchronize(void *context) const noexcept;
  /// Same for the calling thread's current context; does nothing without one.
  void synchronize_current() const noexcept;
  /// The calling thread's current context and those that devices share, where they exist.
  std::vector<void *> contexts() const;
  /// Whether a stream of the calling thread's current context is captured, and into which graph:
  /// null if the driver does not say.
  bool is_captured(void *stream, void *&graph) const noexcept;
  /// Ordinal of the context's device; -1 where the driver does not answer.
  int device_of(void *context) const noexcept;
  /// Allocates zeroed host memory that every device can write, for the life of the process; null on
  /// failure. Works while the thread captures a graph. The calling thread has a context.
  void *allocate_host(size_t bytes) const noexcept;

private:
  SharedLibrary library_;
  cuda::function::Init init_ = nullptr;
  cuda::function::DriverGetVersion driver_get_version_ = nullptr;
  cuda::function::DeviceGet device_get_ = nullptr;
  cuda::function::StreamGetCaptureInfo stream_get_capture_info_ = nullptr;
  cuda::function::DeviceGetName device_get_name_ = nullptr;
  cuda::function::DeviceGetUuid device_get_uuid_ = nullptr;
  cuda::function::DeviceGetAttribute device_get_attribute_ = nullptr;
  cuda::function::DeviceGetCount device_get_count_ = nullptr;
  cuda::function::DevicePrimaryCtxGetState primary_ctx_get_state_ = nullptr;
  cuda::function::DevicePrimaryCtxRetain primary_ctx_retain_ = nullptr;
  cuda::function::DevicePrimaryCtxRelease primary_ctx_release_ = nullptr;
  cuda::function::CtxGetCurrent ctx_get_current_ = nullptr;
  cuda::function::CtxGetDevice ctx_get_device_ = nullptr;
  cuda::function::CtxPushCurrent ctx_push_current_ = nullptr;
  cuda::function::CtxPopCurrent ctx_pop_current_ = nullptr;
  cuda::function::CtxSynchronize ctx_synchronize_ = nullptr;
  cuda::function::MemHostAlloc mem_host_alloc_ = nullptr;
};

// Entry points of libcuda for work of our own on the device: memory, copies, kernels, events.

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
