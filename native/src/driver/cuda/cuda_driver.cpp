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

SymbolTable::Symbol CudaFunctions::work(const char *name) {
  Symbol symbol = find(name);
  if (!symbol.address)
    missing_for_work_ += (missing_for_work_.empty() ? "" : ", ") + std::string(name);
  return symbol;
}

CudaDriver CudaDriver::open() {
  CudaDriver driver;
  driver.library_ =
      SharedLibrary::open("NVIDIA's driver", {{"libcuda.so.1", "system"}}, kDriverAdvice);
  driver.functions_ = CudaFunctions(driver.library_);
  driver.functions_.check(driver.library_, kDriverAdvice);
  return driver;
}

CudaDriver CudaDriver::open_for_work() {
  CudaDriver driver = open();
  if (const std::string &missing = driver.functions_.missing_for_work(); !missing.empty())
    throw Error(ErrorCode::kUnavailable,
                driver.library_.path() + " lacks " + missing +
                    "; install NVIDIA's driver of CUDA 11.3 or later, or run in a container that "
                    "was given it (docker run --gpus all)");
  return driver;
}

void CudaDriver::initialize() const {
  cuda::Result result = functions_.init ? functions_.init(0) : cuda::kErrorNotInitialized;
  if (result != cuda::kSuccess)
    throw Error(ErrorCode::kUnavailable,
                "cuInit answers " + std::to_string(result) + "; " + kDriverAdvice);
}

int CudaDriver::ordinal_of(const std::string &uuid) const {
  int count = 0;
  if (!functions_.device_get_count || functions_.device_get_count(&count) != cuda::kSuccess)
    return -1;
  for (int ordinal = 0; ordinal < count; ++ordinal)
    if (device(ordinal).uuid == uuid)
      return ordinal;
  return -1;
}

int CudaDriver::version_number() const {
  int number = 0;
  bool is_known =
      functions_.driver_get_version && functions_.driver_get_version(&number) == cuda::kSuccess;
  return is_known ? number : 0;
}

std::string CudaDriver::version() const {
  int number = version_number();
  if (number == 0)
    return {};
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

CudaDeviceFacts CudaDriver::device(int ordinal) const {
  CudaDeviceFacts facts;
  cuda::Device device = 0;
  if (!functions_.device_get || functions_.device_get(&device, ordinal) != cuda::kSuccess)
    return facts;
  char name[256] = {};
  if (functions_.device_get_name &&
      functions_.device_get_name(name, sizeof name - 1, device) == cuda::kSuccess)
    facts.name = name;
  unsigned char uuid[16] = {};
  auto get_uuid =
      functions_.device_get_uuid ? functions_.device_get_uuid : functions_.device_get_old_uuid;
  if (get_uuid && get_uuid(uuid, device) == cuda::kSuccess)
    facts.uuid = uuid_text(uuid);
  auto attribute = [&](cuda::DeviceAttribute which) {
    int value = 0;
    bool is_known = functions_.device_get_attribute &&
                    functions_.device_get_attribute(&value, which, device) == cuda::kSuccess;
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
  cuda::Result result = functions_.ctx_push_current(context);
  if (result != cuda::kSuccess)
    return result;
  result = functions_.ctx_synchronize();
  void *popped = nullptr;
  functions_.ctx_pop_current(&popped);
  return result;
}

void CudaDriver::synchronize_current() const noexcept {
  functions_
      .ctx_synchronize(); // after an error, e.g. without a context, there is nothing to wait for
}

std::vector<void *> CudaDriver::contexts() const {
  std::vector<void *> found;
  auto add = [&](void *context) {
    if (context && std::find(found.begin(), found.end(), context) == found.end())
      found.push_back(context);
  };
  void *current = nullptr;
  if (functions_.ctx_get_current && functions_.ctx_get_current(&current) == cuda::kSuccess)
    add(current);
  int count = 0;
  bool can_ask = functions_.device_get_count && functions_.device_get &&
                 functions_.device_primary_ctx_get_state && functions_.device_primary_ctx_retain &&
                 functions_.device_primary_ctx_release;
  if (!can_ask || functions_.device_get_count(&count) != cuda::kSuccess)
    return found;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cuda::Device device = 0;
    unsigned flags = 0;
    int is_active = 0;
    void *context = nullptr;
    bool has_one =
        functions_.device_get(&device, ordinal) == cuda::kSuccess &&
        functions_.device_primary_ctx_get_state(device, &flags, &is_active) == cuda::kSuccess &&
        is_active != 0;
    if (!has_one || functions_.device_primary_ctx_retain(&context, device) != cuda::kSuccess)
      continue;
    add(context);
    functions_.device_primary_ctx_release(device); // its owner keeps it
  }
  return found;
}

bool CudaDriver::is_captured(void *stream, void *&graph) const noexcept {
  int status = cuda::kCaptureNone;
  graph = nullptr;
  return functions_.stream_get_capture_info &&
         functions_.stream_get_capture_info(stream, &status, nullptr, &graph, nullptr, nullptr) ==
             cuda::kSuccess &&
         status != cuda::kCaptureNone;
}

int CudaDriver::device_of(void *context) const noexcept {
  if (!functions_.ctx_get_device || functions_.ctx_push_current(context) != cuda::kSuccess)
    return -1;
  cuda::Device device = -1;
  bool is_known = functions_.ctx_get_device(&device) == cuda::kSuccess;
  void *popped = nullptr;
  functions_.ctx_pop_current(&popped);
  return is_known ? device : -1;
}

void *CudaDriver::allocate_host(size_t bytes) const noexcept {
  if (!functions_.mem_host_alloc)
    return nullptr;
  int mode = exchange_capture_mode(kCaptureModeRelaxed);
  void *memory = nullptr;
  cuda::Result result = functions_.mem_host_alloc(
      &memory, bytes, cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap);
  if (mode >= 0)
    exchange_capture_mode(mode);
  if (result != cuda::kSuccess || !memory)
    return nullptr;
  return std::memset(memory, 0, bytes);
}

std::string CudaDriver::describe(cuda::Result result) const {
  const char *name = nullptr;
  if (functions_.get_error_name)
    functions_.get_error_name(result, &name);
  return std::string(name ? name : "CUDA error") + " (" + std::to_string(result) + ")";
}

void CudaDriver::check(cuda::Result result, const char *function,
                       const std::string &purpose) const {
  if (result == cuda::kSuccess)
    return;
  std::string advice = result == cuda::kErrorOutOfMemory
                           ? "; free memory of the device, or record fewer warps or programs"
                           : "";
  throw Error(ErrorCode::kUnavailable,
              purpose + " failed: " + function + " answered " + describe(result) + advice);
}

CurrentContext::CurrentContext(const CudaFunctions &functions, void *context) noexcept
    : functions_(functions),
      holds_(context && functions.ctx_push_current(context) == cuda::kSuccess) {}

CurrentContext::~CurrentContext() {
  void *popped = nullptr;
  if (holds_)
    functions_.ctx_pop_current(&popped);
}

RelaxedCapture::RelaxedCapture(const CudaFunctions &functions) noexcept : functions_(functions) {
  is_exchanged_ =
      functions.exchange_capture_mode && functions.exchange_capture_mode(&mode_) == cuda::kSuccess;
}

RelaxedCapture::~RelaxedCapture() {
  if (is_exchanged_)
    functions_.exchange_capture_mode(&mode_);
}

} // namespace proton
