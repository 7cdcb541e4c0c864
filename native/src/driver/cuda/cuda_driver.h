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

/// Entry points by their names without "cu". What is neither needed nor checked for may be null.
class CudaFunctions : public SymbolTable {
  std::string missing_for_work_; // first: it is filled while the others are made

  /// Needed for work of our own on the device alone: memory, copies, kernels, events.
  Symbol work(const char *name);

public:
  using SymbolTable::SymbolTable;
  /// What the library lacks for such work, with commas; empty: nothing.
  const std::string &missing_for_work() const { return missing_for_work_; }

  cuda::function::CtxPushCurrent ctx_push_current = need("cuCtxPushCurrent_v2");
  cuda::function::CtxPopCurrent ctx_pop_current = need("cuCtxPopCurrent_v2");
  cuda::function::CtxSynchronize ctx_synchronize = need("cuCtxSynchronize");
  cuda::function::CtxGetCurrent ctx_get_current = work("cuCtxGetCurrent");
  cuda::function::CtxGetDevice ctx_get_device = work("cuCtxGetDevice");
  cuda::function::DeviceGetAttribute device_get_attribute = work("cuDeviceGetAttribute");
  cuda::function::ModuleLoadData module_load_data = work("cuModuleLoadData");
  cuda::function::ModuleUnload module_unload = work("cuModuleUnload");
  cuda::function::ModuleGetFunction module_get_function = work("cuModuleGetFunction");
  cuda::function::LaunchKernel launch_kernel = work("cuLaunchKernel");
  cuda::function::MemAlloc mem_alloc = work("cuMemAlloc_v2");
  cuda::function::MemFree mem_free = work("cuMemFree_v2");
  cuda::function::MemHostAlloc mem_host_alloc = work("cuMemHostAlloc");
  cuda::function::MemFreeHost mem_free_host = work("cuMemFreeHost");
  cuda::function::MemsetD8Async memset_d8_async = work("cuMemsetD8Async");
  cuda::function::MemcpyDtoHAsync memcpy_dtoh_async = work("cuMemcpyDtoHAsync_v2");
  cuda::function::StreamCreate stream_create = work("cuStreamCreate");
  cuda::function::StreamDestroy stream_destroy = work("cuStreamDestroy_v2");
  cuda::function::StreamSynchronize stream_synchronize = work("cuStreamSynchronize");
  cuda::function::StreamWaitEvent stream_wait_event = work("cuStreamWaitEvent");
  cuda::function::EventCreate event_create = work("cuEventCreate");
  cuda::function::EventDestroy event_destroy = work("cuEventDestroy_v2");
  cuda::function::EventRecord event_record = work("cuEventRecord");
  cuda::function::EventQuery event_query = work("cuEventQuery");
  cuda::function::EventSynchronize event_synchronize = work("cuEventSynchronize");
  cuda::function::DevicePrimaryCtxRetain device_primary_ctx_retain =
      find("cuDevicePrimaryCtxRetain");
  cuda::function::CtxSetCurrent ctx_set_current = find("cuCtxSetCurrent");
  cuda::function::StreamIsCapturing stream_is_capturing = find("cuStreamIsCapturing");
  cuda::function::StreamGetCaptureInfo stream_get_capture_info = find("cuStreamGetCaptureInfo_v2");
  cuda::function::StreamGetId stream_get_id = find("cuStreamGetId");
  cuda::function::ThreadExchangeStreamCaptureMode exchange_capture_mode =
      find("cuThreadExchangeStreamCaptureMode");
  cuda::function::GetErrorName get_error_name = find("cuGetErrorName");
  cuda::function::Init init = find("cuInit");
  cuda::function::DriverGetVersion driver_get_version = find("cuDriverGetVersion");
  cuda::function::DeviceGet device_get = find("cuDeviceGet");
  cuda::function::DeviceGetName device_get_name = find("cuDeviceGetName");
  cuda::function::DeviceGetUuid device_get_uuid = find("cuDeviceGetUuid_v2");
  cuda::function::DeviceGetUuid device_get_old_uuid = find("cuDeviceGetUuid");
  cuda::function::DeviceGetCount device_get_count = find("cuDeviceGetCount");
  cuda::function::DevicePrimaryCtxGetState device_primary_ctx_get_state =
      find("cuDevicePrimaryCtxGetState");
  cuda::function::DevicePrimaryCtxRelease device_primary_ctx_release =
      find("cuDevicePrimaryCtxRelease_v2");
};

class CudaDriver {
public:
  /// Throws Error(kUnavailable) where there is no driver or it lacks an entry point.
  static CudaDriver open();
  /// Same, with all that work of our own on the device takes.
  static CudaDriver open_for_work();

  const CudaFunctions &functions() const { return functions_; }
  /// "CUDA_ERROR_OUT_OF_MEMORY (2)".
  std::string describe(cuda::Result result) const;
  /// Throws Error(kUnavailable) for every result but success: which call failed, while doing what.
  void check(cuda::Result result, const char *function, const std::string &purpose) const;

  /// Call before anything of CUDA in a process that does not use it otherwise. Throws
  /// Error(kUnavailable).
  void initialize() const;
  /// E.g. 13000 for CUDA 13.0; 0 when the driver does not answer.
  int version_number() const;
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
  CudaFunctions functions_;
};

/// Makes a context current while it lives. A null context changes nothing.
class CurrentContext {
public:
  CurrentContext(const CudaFunctions &functions, void *context) noexcept;
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;
  /// False where the context is gone.
  bool holds() const { return holds_; }

private:
  const CudaFunctions &functions_;
  bool holds_;
};

/// Lets the calling thread allocate and wait although some thread captures a graph.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const CudaFunctions &functions) noexcept;
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  const CudaFunctions &functions_;
  int mode_ = cuda::kCaptureModeRelaxed;
  bool is_exchanged_ = false;
};

} // namespace proton
