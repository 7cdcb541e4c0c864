// The part of libcuda's double that runs work: memory, captures, modules and kernels.
// Included by fake_cuda.cpp.
#pragma once

#include "fake_cuda_runs.h"

EXPORT int cuStreamIsCapturing(void *stream, int *status) {
  FAULT(cuStreamIsCapturing);
  std::lock_guard lock(work_mutex);
  *status = is_captured(stream) ? cuda::kCaptureActive : cuda::kCaptureNone;
  return cuda::kSuccess;
}
EXPORT int cuStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **,
                                     const void **, size_t *) {
  FAULT(cuStreamGetCaptureInfo_v2);
  std::lock_guard lock(work_mutex);
  *status = is_captured(stream) ? cuda::kCaptureActive : cuda::kCaptureNone;
  if (id != nullptr)
    *id = is_captured(stream) ? capture().id : 0;
  return cuda::kSuccess;
}
EXPORT int cuStreamGetId(void *stream, unsigned long long *id) {
  FAULT(cuStreamGetId);
  if (is_captured(stream)) {
    break_open_captures();
    return kErrorStreamCaptureUnsupported;
  }
  *id = reinterpret_cast<uintptr_t>(stream) + 1;
  return cuda::kSuccess;
}

// Memory of the device is memory of the host.
EXPORT int cuMemAlloc_v2(void **memory, size_t bytes) {
  UNSAFE(cuMemAlloc_v2);
  return allocate(memory, bytes);
}
EXPORT int cuMemFree_v2(void *memory) {
  UNSAFE(cuMemFree_v2);
  return release(memory);
}
EXPORT int cuMemAllocHost_v2(void **memory, size_t bytes) { return allocate(memory, bytes); }
EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  UNSAFE(cuMemHostAlloc);
  return allocate(memory, bytes);
}
EXPORT int cuMemFreeHost(void *memory) {
  UNSAFE(cuMemFreeHost);
  return release(memory);
}
EXPORT int cuMemHostGetDevicePointer_v2(void **device, void *host, unsigned) {
  *device = host;
  return cuda::kSuccess;
}
EXPORT int cuMemcpyDtoHAsync_v2(void *target, void *source, size_t bytes, void *stream) {
  FAULT(cuMemcpyDtoHAsync_v2);
  run_on(stream, [=] { std::memcpy(target, source, bytes); });
  return cuda::kSuccess;
}
EXPORT int cuMemsetD8Async(void *target, unsigned char value, size_t bytes, void *stream) {
  FAULT(cuMemsetD8Async);
  run_on(stream, [=] { std::memset(target, value, bytes); });
  return cuda::kSuccess;
}
EXPORT int cuMemsetD32Async(void *target, unsigned value, size_t count, void *) {
  for (size_t i = 0; i < count; ++i)
    static_cast<unsigned *>(target)[i] = value;
  return cuda::kSuccess;
}

EXPORT int cuModuleLoadData(void **module, const void *image) {
  UNSAFE(cuModuleLoadData);
  *module = const_cast<void *>(image);
  return cuda::kSuccess;
}
EXPORT int cuModuleUnload(void *) {
  UNSAFE(cuModuleUnload);
  return cuda::kSuccess;
}
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name) {
  FAULT(cuModuleGetFunction);
  *function = module;
  for (const char *const &own : kOwnKernels)
    if (std::strcmp(own, name) == 0)
      *function = const_cast<char *>(own);
  return cuda::kSuccess;
}
EXPORT int cuFuncGetAttribute(int *value, int, void *) {
  FAULT(cuFuncGetAttribute);
  *value = 0;
  return cuda::kSuccess;
}
EXPORT int cuFuncSetAttribute(void *, int, int) { return cuda::kSuccess; }
EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned, unsigned, unsigned block_x,
                          unsigned, unsigned, unsigned shared_bytes, void *stream,
                          void **parameters, void **) {
  FAULT(cuLaunchKernel);
  if (run_own(function, {grid_x, block_x, shared_bytes, stream}, parameters))
    return cuda::kSuccess;
  if (launches_are_seen())
    control("fake_cupti_launch", static_cast<const char *>("kernel"), uint32_t{7});
  return cuda::kSuccess;
}
