#include "driver/hip/hip_driver.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kHipAdvice =
    "install ROCm 6.0 or later, or name its libamdhip64 by PROTON_BENCH_HIP_LIB";
constexpr const char *kDeviceAdvice =
    "check rocminfo, that this user may open /dev/kfd and /dev/dri (groups render and video), and "
    "ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES";

std::string text_of(const char *bytes, size_t most) { return {bytes, strnlen(bytes, most)}; }

} // namespace

HipDriver HipDriver::open(const std::vector<LibraryCandidate> &candidates) {
  HipDriver driver;
  driver.library_ = SharedLibrary::open("libamdhip64", candidates, kHipAdvice);
  driver.functions_ = HipFunctions(driver.library_);
  driver.functions_.check(driver.library_, kHipAdvice);
  return driver;
}

std::string HipDriver::version() const {
  int number = 0;
  if (!functions_.runtime_get_version || functions_.runtime_get_version(&number) != hip::kSuccess)
    return {};
  return std::to_string(number / 10000000) + "." + std::to_string(number / 100000 % 100) + "." +
         std::to_string(number % 100000);
}

std::string HipDriver::describe(hip::Result result) const {
  const char *name = functions_.get_error_name ? functions_.get_error_name(result) : nullptr;
  return std::string(name ? name : "error") + " (" + std::to_string(result) + ")";
}

int HipDriver::device_count() const {
  int count = 0;
  hip::Result result = functions_.get_device_count(&count);
  if (result != hip::kSuccess || count <= 0)
    throw Error(ErrorCode::kUnavailable,
                "hipGetDeviceCount of " + path() + " finds no AMD GPU" +
                    (result == hip::kSuccess ? "" : ": " + describe(result)) + "; " +
                    kDeviceAdvice);
  return count;
}

HipDeviceFacts HipDriver::device(int ordinal) const {
  HipDeviceFacts facts;
  auto attribute = [&](hip::DeviceAttribute which) {
    int value = 0;
    bool is_known = functions_.device_get_attribute(&value, which, ordinal) == hip::kSuccess;
    return is_known ? value : 0;
  };
  facts.compute_units = attribute(hip::kAttributeMultiprocessors);
  facts.clock_rate_khz = attribute(hip::kAttributeClockRateKhz);
  facts.memory_clock_rate_khz = attribute(hip::kAttributeMemoryClockRateKhz);
  facts.bus_width_bits = attribute(hip::kAttributeMemoryBusWidthBits);
  facts.wave_size = attribute(hip::kAttributeWarpSize);
  char text[hip::kPropertiesTextBytes] = {};
  if (functions_.device_get_name &&
      functions_.device_get_name(text, sizeof text, ordinal) == hip::kSuccess)
    facts.name = text_of(text, sizeof text);
  char pci[32] = {};
  if (functions_.device_get_pci_bus_id &&
      functions_.device_get_pci_bus_id(pci, sizeof pci, ordinal) == hip::kSuccess) {
    facts.pci = text_of(pci, sizeof pci);
    std::transform(facts.pci.begin(), facts.pci.end(), facts.pci.begin(),
                   [](unsigned char c) { return std::tolower(c); });
  }
  std::vector<char> properties(2 * hip::kPropertiesBytes); // later releases may write more
  if (functions_.get_device_properties &&
      functions_.get_device_properties(properties.data(), ordinal) == hip::kSuccess) {
    std::string arch =
        text_of(&properties[hip::properties_offset::kArch], hip::kPropertiesTextBytes);
    facts.arch = arch.substr(0, arch.find(':'));
    std::string digits = text_of(&properties[hip::properties_offset::kUuid], 16);
    if (!digits.empty())
      facts.uuid = "GPU-" + digits;
  }
  return facts;
}

hip::Result HipDriver::synchronize() const noexcept {
  int present = 0;
  int count = 0;
  hip::Result first = functions_.get_device_count(&count);
  if (first != hip::kSuccess)
    return first;
  bool knows_present = functions_.get_device(&present) == hip::kSuccess;
  auto keep = [&first](hip::Result result) {
    if (first == hip::kSuccess)
      first = result;
    return result == hip::kSuccess;
  };
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (keep(functions_.set_device(ordinal)))
      keep(functions_.device_synchronize());
  }
  if (knows_present)
    keep(functions_.set_device(present));
  return first;
}

const char *HipDriver::kernel_name(void *function) const noexcept {
  return functions_.kernel_name_ref && function ? functions_.kernel_name_ref(function) : nullptr;
}

const char *HipDriver::kernel_name(const void *host_function, void *stream) const noexcept {
  if (!functions_.kernel_name_ref_by_ptr || !host_function)
    return nullptr;
  return functions_.kernel_name_ref_by_ptr(host_function, stream);
}

RoctxLibrary RoctxLibrary::open(const std::vector<LibraryCandidate> &candidates) {
  RoctxLibrary roctx;
  roctx.library_ = SharedLibrary::open(
      "libroctx64", candidates,
      "install roctracer of ROCm, or name a libroctx64 by PROTON_BENCH_ROCTX_LIB");
  roctx.library_.resolve("roctxRegisterTracerCallback", roctx.register_callback_);
  return roctx;
}

bool RoctxLibrary::set_callback(roctx::TracerCallback callback) const noexcept {
  if (!register_callback_)
    return false;
  register_callback_(callback);
  return true;
}

} // namespace proton
