// libcuda opened at run time: the few calls a profiler makes itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/cuda/cuda_abi.h"
#include "driver/shared_library.h"

namespace proton {

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

} // namespace proton
