#include "driver/cuda/cuda_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver/own_work.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kDriverAdvice =
    "install NVIDIA's driver, or run in a container that was given it "
    "(docker run --gpus all), and check nvidia-smi";

std::string uuid_text(const unsigned char (&bytes)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    text += digits;
    if (i == 3 || i == 5 || i == 7 || i == 9)
      text += '-';
  }
  return text;
}

} // namespace

CudaDriver CudaDriver::open() {
  CudaDriver driver;
  driver.library_ =
      SharedLibrary::open("NVIDIA's driver", {{"libcuda.so.1", "system"}}, kDriverAdvice);
  const SharedLibrary &library = driver.library_;
  library.resolve("cuInit", driver.init_);
  library.resolve("cuDriverGetVersion", driver.driver_get_version_);
  library.resolve("cuDeviceGet", driver.device_get_);
  library.resolve("cuDeviceGetName", driver.device_get_name_);
  if (!library.resolve("cuDeviceGetUuid_v2", driver.device_get_uuid_))
    library.resolve("cuDeviceGetUuid", driver.device_get_uuid_);
  library.resolve("cuDeviceGetAttribute", driver.device_get_attribute_);
  library.resolve("cuDeviceGetCount", driver.device_get_count_);
  library.resolve("cuDevicePrimaryCtxGetState", driver.primary_ctx_get_state_);
  library.resolve("cuDevicePrimaryCtxRetain", driver.primary_ctx_retain_);
  library.resolve("cuDevicePrimaryCtxRelease_v2", driver.primary_ctx_release_);
  library.resolve("cuCtxGetCurrent", driver.ctx_get_current_);
  library.resolve("cuCtxGetDevice", driver.ctx_get_device_);
  library.resolve("cuStreamGetCaptureInfo_v2", driver.stream_get_capture_info_);
  library.resolve("cuMemHostAlloc", driver.mem_host_alloc_);
  bool has_contexts = library.resolve("cuCtxPushCurrent_v2", driver.ctx_push_current_);
  has_contexts &= library.resolve("cuCtxPopCurrent_v2", driver.ctx_pop_current_);
  has_contexts &= library.resolve("cuCtxSynchronize", driver.ctx_synchronize_);
  if (!has_contexts)
    throw Error(ErrorCode::kUnavailable, library.path() +
                                             " lacks cuCtxPushCurrent_v2, cuCtxPopCurrent_v2 or "
                                             "cuCtxSynchronize; " +
                                             kDriverAdvice);
  return driver;
}

void CudaDriver::initialize() const {
  cuda::Result result = init_ ? init_(0) : cuda::kErrorNotInitialized;
  if (result != cuda::kSuccess)
    throw Error(ErrorCode::kUnavailable,
                "cuInit answers " + std::to_string(result) + "; " + kDriverAdvice);
}

int CudaDriver::ordinal_of(const std::string &uuid) const {
  int count = 0;
  if (!device_get_count_ || device_get_count_(&count) != cuda::kSuccess)
    return -1;
  for (int ordinal = 0; ordinal < count; ++ordinal)
    if (device(ordinal).uuid == uuid)
      return ordinal;
  return -1;
}

std::string CudaDriver::version() const {
  int number = 0;
  if (!driver_get_version_ || driver_get_version_(&number) != cuda::kSuccess)
    return {};
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

CudaDeviceFacts CudaDriver::device(int ordinal) const {
  CudaDeviceFacts facts;
  cuda::Device device = 0;
  if (!device_get_ || device_get_(&device, ordinal) != cuda::kSuccess)
    return facts;
  char name[256] = {};
  if (device_get_name_ && device_get_name_(name, sizeof name - 1, device) == cuda::kSuccess)
    facts.name = name;
  unsigned char uuid[16] = {};
  if (device_get_uuid_ && device_get_uuid_(uuid, device) == cuda::kSuccess)
    facts.uuid = uuid_text(uuid);
  auto attribute = [&](cuda::DeviceAttribute which) {
    int value = 0;
    bool is_known =
        device_get_attribute_ && device_get_attribute_(&value, which, device) == cuda::kSuccess;
    return is_known ? value : 0;
  };
  facts.capability =
      10 * attribute(cuda::kAttributeCapabilityMajor) + attribute(cuda::kAttributeCapabilityMinor);
  facts.multiprocessors = attribute(cuda::kAttributeMultiprocessors);
  facts.clock_rate_khz = attribute(cuda::kAttributeClockRateKhz);
  facts.memory_clock_rate_khz = attribute(cuda::kAttributeMemoryClockRateKhz);
  facts.bus_width_bits = attribute(cuda::kAttributeMemoryBusWidthBits);
  return facts;
}

cuda::Result CudaDriver::synchronize(void *context) const noexcept {
  cuda::Result result = ctx_push_current_(context);
  if (result != cuda::kSuccess)
    return result;
  result = ctx_synchronize_();
  void *popped = nullptr;
  ctx_pop_current_(&popped);
  return result;
}

void CudaDriver::synchronize_current() const noexcept {
  ctx_synchronize_(); // after an error, e.g. without a context, there is nothing to wait for
}

std::vector<void *> CudaDriver::contexts() const {
  std::vector<void *> found;
  auto add = [&](void *context) {
    if (context && std::find(found.begin(), found.end(), context) == found.end())
      found.push_back(context);
  };
  void *current = nullptr;
  if (ctx_get_current_ && ctx_get_current_(&current) == cuda::kSuccess)
    add(current);
  int count = 0;
  bool can_ask = device_get_count_ && device_get_ && primary_ctx_get_state_ &&
                 primary_ctx_retain_ && primary_ctx_release_;
  if (!can_ask || device_get_count_(&count) != cuda::kSuccess)
    return found;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cuda::Device device = 0;
    unsigned flags = 0;
    int is_active = 0;
    void *context = nullptr;
    bool has_one = device_get_(&device, ordinal) == cuda::kSuccess &&
                   primary_ctx_get_state_(device, &flags, &is_active) == cuda::kSuccess &&
                   is_active != 0;
    if (!has_one || primary_ctx_retain_(&context, device) != cuda::kSuccess)
      continue;
    add(context);
    primary_ctx_release_(device); // its owner keeps it
  }
  return found;
}

bool CudaDriver::is_captured(void *stream, void *&graph) const noexcept {
  int status = cuda::kCaptureNone;
  graph = nullptr;
  return stream_get_capture_info_ &&
         stream_get_capture_info_(stream, &status, nullptr, &graph, nullptr, nullptr) ==
             cuda::kSuccess &&
         status != cuda::kCaptureNone;
}

int CudaDriver::device_of(void *context) const noexcept {
  if (!ctx_get_device_ || ctx_push_current_(context) != cuda::kSuccess)
    return -1;
  cuda::Device device = -1;
  bool is_known = ctx_get_device_(&device) == cuda::kSuccess;
  void *popped = nullptr;
  ctx_pop_current_(&popped);
  return is_known ? device : -1;
}

void *CudaDriver::allocate_host(size_t bytes) const noexcept {
  if (!mem_host_alloc_)
    return nullptr;
  int mode = exchange_capture_mode(kCaptureModeRelaxed);
  void *memory = nullptr;
  cuda::Result result =
      mem_host_alloc_(&memory, bytes, cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap);
  if (mode >= 0)
    exchange_capture_mode(mode);
  if (result != cuda::kSuccess || !memory)
    return nullptr;
  return std::memset(memory, 0, bytes);
}

} // namespace proton
