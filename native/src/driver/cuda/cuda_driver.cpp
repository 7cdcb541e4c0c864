#include "driver/cuda/cuda_driver.h"

#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver/own_work.h"
#include "support/error.h"

namespace proton {
namespace {

constexpr std::string_view kPrefix = ".text.";

/// Reads a structure that lies wholly inside the image.
template <typename T> bool read_at(std::string_view image, uint64_t offset, T &value) {
  if (offset > image.size() || image.size() - offset < sizeof value)
    return false;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return true;
}

/// The text that begins at an offset and ends with a NUL inside the image; empty without one.
std::string_view text_at(std::string_view image, uint64_t offset) {
  if (offset >= image.size())
    return {};
  std::string_view rest = image.substr(offset);
  size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

} // namespace

std::vector<std::string_view> kernels_of_cubin(const char *image, size_t bytes) {
  std::vector<std::string_view> names;
  std::string_view all(image, image ? bytes : 0);
  Elf64_Ehdr header;
  bool is_elf = read_at(all, 0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_shentsize == sizeof(Elf64_Shdr);
  Elf64_Shdr texts;
  uint64_t texts_at = is_elf ? header.e_shoff + uint64_t{header.e_shstrndx} * sizeof texts : 0;
  if (!is_elf || !read_at(all, texts_at, texts))
    return names;
  for (uint64_t number = 0; number < header.e_shnum; ++number) {
    Elf64_Shdr section;
    if (!read_at(all, header.e_shoff + number * sizeof section, section))
      break;
    std::string_view name = text_at(all, texts.sh_offset + section.sh_name);
    if (name.starts_with(kPrefix))
      names.push_back(name.substr(kPrefix.size()));
  }
  return names;
}

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
