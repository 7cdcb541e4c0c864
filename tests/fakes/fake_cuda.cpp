// The double of libcuda (libcuda.so.1): devices, contexts and the other calls of profilers and
// Triton. Environment:
//   FAKE_CUDA_DEVICES  number of devices (1); 0: cuInit answers CUDA_ERROR_NO_DEVICE
//   FAKE_CUDA_LAUNCHES "1": cuLaunchKernel is seen by the double of libcupti in FAKE_CUPTI_LIB
//   FAKE_CUDA_FAIL     "cuCtxSynchronize=700": entry points that return a code
// What streams are given runs at once, in the order that events ask for (fake_cuda_streams.h). The
// kernels that reduce records run on the host (emulated_kernels.h), others do nothing.
// When libcupti's double is loaded under the name in FAKE_CUPTI_LIB, cuCtxSynchronize completes the
// records that it holds back for the current context, or ends the captures that are open.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "driver/cuda/cuda_abi.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace cuda = proton::cuda;

namespace {

constexpr uint64_t kContextHandle = 1; // as in the double of libcupti
constexpr int kErrorStreamCaptureUnsupported = 900;

void *context_handle(uint64_t id) {
  return reinterpret_cast<void *>((kContextHandle << 44) | (id << 4));
}

uint32_t context_id(const void *context) {
  return static_cast<uint32_t>((reinterpret_cast<uint64_t>(context) & ((1ULL << 44) - 1)) >> 4);
}

std::atomic<bool> is_initialized{false};
thread_local void *current_context = nullptr;
thread_local bool has_own_context = false;
std::atomic<uint64_t> synchronisations{0};

void *current() { return has_own_context ? current_context : context_handle(1); }

int devices() {
  const char *text = std::getenv("FAKE_CUDA_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

std::mutex calls_mutex;
std::map<std::string, uint64_t> &calls() {
  static auto *instance = new std::map<std::string, uint64_t>;
  return *instance;
}

/// Faults that a test plans: the call after `skip` others of its name returns `code`.
struct PlannedFault {
  std::string name; ///< empty: every call counts
  int code = 0;
  uint64_t skip = 0;
};
PlannedFault &plan() {
  static auto *instance = new PlannedFault;
  return *instance;
}

int planned_fault(const char *name) {
  std::lock_guard lock(calls_mutex);
  PlannedFault &next = plan();
  if (next.code == 0 || (!next.name.empty() && next.name != name))
    return 0;
  if (next.skip != 0) {
    --next.skip;
    return 0;
  }
  return std::exchange(next.code, 0);
}

int fault(const char *name) {
  {
    std::lock_guard lock(calls_mutex);
    ++calls()[name];
  }
  if (const int code = planned_fault(name); code != 0)
    return code;
  const char *environment = std::getenv("FAKE_CUDA_FAIL");
  if (environment == nullptr)
    return 0;
  const std::string text = std::string(",") + environment;
  const std::string wanted = std::string(",") + name + "=";
  const size_t at = text.find(wanted);
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + wanted.size());
}

int attribute(int which) {
  switch (which) {
  case cuda::kAttributeWarpSize:
    return 32;
  case cuda::kAttributeClockRateKhz:
    return 1'980'000;
  case cuda::kAttributeMultiprocessors:
    return 132;
  case cuda::kAttributeMemoryClockRateKhz:
    return 3'201'000;
  case cuda::kAttributeMemoryBusWidthBits:
    return 6144;
  case cuda::kAttributeL2Bytes:
    return 62'914'560;
  case cuda::kAttributeCapabilityMajor:
    return 9;
  default:
    return 0;
  }
}

/// Calls a control of libcupti's double, if that is loaded.
template <typename... Arguments> void control(const char *name, Arguments... arguments) {
  const char *path = std::getenv("FAKE_CUPTI_LIB");
  void *library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr)
    return;
  auto function = reinterpret_cast<void (*)(Arguments...)>(dlsym(library, name));
  if (function != nullptr)
    function(arguments...);
  dlclose(library);
}

/// Waits for a context in the double of libcupti. Returns the driver's answer.
int wait_for(uint32_t context) {
  int were_open = 0;
  control("fake_cupti_break_captures", &were_open);
  if (were_open != 0)
    return kErrorStreamCaptureUnsupported;
  control("fake_cupti_release", context);
  return cuda::kSuccess;
}

bool launches_are_seen() {
  const char *text = std::getenv("FAKE_CUDA_LAUNCHES");
  return text != nullptr && std::strcmp(text, "1") == 0;
}

bool break_open_captures();
bool break_unsafe_captures(int mode);
void wait_for_streams(const void *only);

thread_local int capture_mode = 0; ///< of the calling thread

/// Whether the driver refuses a potentially unsafe call, and ends captures.
bool is_refused() {
  int is_refused = 0;
  control("fake_cupti_unsafe_call", capture_mode, &is_refused);
  return break_unsafe_captures(capture_mode) || is_refused != 0;
}

} // namespace

#define FAULT(name)                                                                                \
  if (const int code = fault(#name); code != 0)                                                    \
  return code

/// Begins calls that CUDA names potentially unsafe while graphs are captured.
#define UNSAFE(name)                                                                               \
  FAULT(name);                                                                                     \
  if (is_refused())                                                                                \
  return kErrorStreamCaptureUnsupported

// Control.
EXPORT uint64_t fake_cuda_calls(const char *name) {
  std::lock_guard lock(calls_mutex);
  return calls()[name];
}
/// The call of `name` (null: of any) after `skip` others returns `code`, once.
EXPORT void fake_cuda_plan_fault(const char *name, int code, uint64_t skip) {
  std::lock_guard lock(calls_mutex);
  plan() = {name == nullptr ? "" : name, code, skip};
}
/// Whether the planned fault is still pending.
EXPORT bool fake_cuda_fault_waits() {
  std::lock_guard lock(calls_mutex);
  return plan().code != 0;
}
EXPORT uint64_t fake_cuda_synchronisations() { return synchronisations; }
/// 0: the thread has no current context.
EXPORT void fake_cuda_set_context(uint32_t id) {
  has_own_context = true;
  current_context = id == 0 ? nullptr : context_handle(id);
}

EXPORT int cuInit(unsigned) {
  FAULT(cuInit);
  if (devices() == 0)
    return cuda::kErrorNoDevice;
  is_initialized = true;
  return cuda::kSuccess;
}

EXPORT int fake_cuda_is_initialized() { return is_initialized ? 1 : 0; }

EXPORT int cuDriverGetVersion(int *version) {
  FAULT(cuDriverGetVersion);
  const char *text = std::getenv("FAKE_CUDA_VERSION");
  *version = text == nullptr ? 13000 : std::atoi(text);
  return cuda::kSuccess;
}

EXPORT int cuGetErrorString(int result, const char **text) {
  static thread_local char name[40];
  std::snprintf(name, sizeof name, "fake CUDA error %d", result);
  *text = name;
  return cuda::kSuccess;
}

EXPORT int cuGetErrorName(int result, const char **text) { return cuGetErrorString(result, text); }

EXPORT int cuDeviceGetCount(int *count) {
  FAULT(cuDeviceGetCount);
  *count = devices();
  return cuda::kSuccess;
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
  FAULT(cuDeviceGet);
  *device = ordinal;
  return ordinal < devices() ? cuda::kSuccess : cuda::kErrorInvalidDevice;
}

EXPORT int cuDeviceGetName(char *name, int bytes, int device) {
  FAULT(cuDeviceGetName);
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU %d", device);
  return cuda::kSuccess;
}

EXPORT int cuDeviceGetUuid(unsigned char *uuid, int device) {
  FAULT(cuDeviceGetUuid);
  std::memset(uuid, device + 1, 16);
  return cuda::kSuccess;
}
EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  return cuDeviceGetUuid(uuid, device);
}

EXPORT int cuDeviceGetAttribute(int *value, int which, int) {
  FAULT(cuDeviceGetAttribute);
  *value = attribute(which);
  return cuda::kSuccess;
}

EXPORT int cuDevicePrimaryCtxGetState(int, unsigned *flags, int *is_active) {
  FAULT(cuDevicePrimaryCtxGetState);
  *flags = 0;
  *is_active = is_initialized ? 1 : 0;
  return cuda::kSuccess;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
  FAULT(cuDevicePrimaryCtxRetain);
  *context = context_handle(static_cast<uint64_t>(device) + 1);
  return cuda::kSuccess;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int) { return cuda::kSuccess; }

EXPORT int cuCtxGetCurrent(void **context) {
  FAULT(cuCtxGetCurrent);
  *context = current();
  return cuda::kSuccess;
}

EXPORT int cuCtxSetCurrent(void *context) {
  FAULT(cuCtxSetCurrent);
  has_own_context = true;
  current_context = context;
  return cuda::kSuccess;
}

EXPORT int cuCtxPushCurrent_v2(void *context) {
  FAULT(cuCtxPushCurrent_v2);
  return cuCtxSetCurrent(context);
}

EXPORT int cuCtxPopCurrent_v2(void **context) {
  FAULT(cuCtxPopCurrent_v2);
  if (context != nullptr)
    *context = current();
  has_own_context = false;
  return cuda::kSuccess;
}

EXPORT int cuCtxGetDevice(int *device) {
  FAULT(cuCtxGetDevice);
  if (current() == nullptr)
    return cuda::kErrorInvalidContext;
  *device = static_cast<int>(context_id(current())) - 1;
  return cuda::kSuccess;
}

EXPORT int cuCtxGetId(void *context, unsigned long long *id) {
  FAULT(cuCtxGetId);
  *id = context_id(context == nullptr ? current() : context);
  return cuda::kSuccess;
}

EXPORT int cuCtxSynchronize() {
  FAULT(cuCtxSynchronize);
  if (current() == nullptr)
    return cuda::kErrorInvalidContext;
  ++synchronisations;
  if (break_open_captures())
    return kErrorStreamCaptureUnsupported;
  wait_for_streams(nullptr);
  return wait_for(context_id(current()));
}

EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cuda::kSuccess;
}

EXPORT int cuStreamCreateWithPriority(void **stream, unsigned, int) {
  *stream = reinterpret_cast<void *>((2ULL << 44) | (9ULL << 4));
  return cuda::kSuccess;
}
EXPORT int cuStreamGetCtx(void *, void **context) {
  *context = current();
  return cuda::kSuccess;
}

EXPORT int cuGraphNodeGetType(void *, int *type) {
  FAULT(cuGraphNodeGetType);
  *type = cuda::kNodeKernel;
  return cuda::kSuccess;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) {
  FAULT(cuThreadExchangeStreamCaptureMode);
  std::swap(capture_mode, *mode);
  return cuda::kSuccess;
}
EXPORT int cuLaunchKernelEx(const cuda::LaunchConfig *, void *, void **, void **) {
  FAULT(cuLaunchKernelEx);
  return cuda::kSuccess;
}

#include "fake_cuda_work.h"
