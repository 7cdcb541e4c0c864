#include "collector/hip/hip_devices.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

namespace proton {
namespace {

constexpr size_t kNoGpu = static_cast<size_t>(-1);

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

std::string trimmed(const std::string &word) {
  size_t first = word.find_first_not_of(" \t");
  size_t last = word.find_last_not_of(" \t");
  return first == std::string::npos ? "" : word.substr(first, last - first + 1);
}

/// Position in `left` that a word of a variable names.
size_t place_of(const std::string &word, const std::vector<size_t> &left,
                const std::vector<GpuIdentity> &gpus) {
  if (word.starts_with("GPU-")) {
    auto found = std::find_if(left.begin(), left.end(),
                              [&](size_t gpu) { return gpus[gpu].uuid.starts_with(word); });
    return found == left.end() ? kNoGpu : static_cast<size_t>(found - left.begin());
  }
  size_t index = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  bool is_index = error == std::errc() && end == word.data() + word.size();
  return is_index && index < left.size() ? index : kNoGpu;
}

/// What a variable leaves, in its order.
std::vector<size_t> chosen(const std::string &value, const std::vector<size_t> &left,
                           const std::vector<GpuIdentity> &gpus) {
  if (value.empty())
    return left;
  std::vector<size_t> kept;
  std::istringstream words(value);
  for (std::string word; std::getline(words, word, ',');) {
    size_t place = place_of(trimmed(word), left, gpus);
    if (place == kNoGpu || std::find(kept.begin(), kept.end(), left[place]) != kept.end())
      break;
    kept.push_back(left[place]);
  }
  return kept;
}

/// Whether a text differs between all of them.
bool tells_apart(const std::vector<GpuIdentity> &of, std::string GpuIdentity::*text) {
  std::vector<std::string> all;
  for (const GpuIdentity &each : of)
    all.push_back(each.*text);
  std::sort(all.begin(), all.end());
  return !all.empty() && !all.front().empty() &&
         std::adjacent_find(all.begin(), all.end()) == all.end();
}

} // namespace

VisibleVariables VisibleVariables::of_environment() {
  std::string hip = variable("HIP_VISIBLE_DEVICES");
  return {variable("ROCR_VISIBLE_DEVICES"), hip.empty() ? variable("CUDA_VISIBLE_DEVICES") : hip};
}

std::vector<int> ordinals_by_variables(const std::vector<GpuIdentity> &gpus,
                                       const VisibleVariables &variables) {
  std::vector<size_t> left(gpus.size());
  for (size_t i = 0; i < left.size(); ++i)
    left[i] = i;
  left = chosen(variables.hip, chosen(variables.rocr, left, gpus), gpus);
  std::vector<int> ordinals(gpus.size(), -1);
  for (size_t i = 0; i < left.size(); ++i)
    ordinals[left[i]] = static_cast<int>(i);
  return ordinals;
}

std::vector<int> ordinals_by_identity(const std::vector<GpuIdentity> &gpus,
                                      const std::vector<GpuIdentity> &devices) {
  for (auto text : {&GpuIdentity::uuid, &GpuIdentity::pci}) {
    if (!tells_apart(gpus, text) || !tells_apart(devices, text))
      continue;
    std::vector<int> ordinals(gpus.size(), -1);
    size_t matched = 0;
    for (size_t gpu = 0; gpu < gpus.size(); ++gpu)
      for (size_t i = 0; i < devices.size(); ++i)
        if (gpus[gpu].*text == devices[i].*text) {
          ordinals[gpu] = static_cast<int>(i);
          ++matched;
        }
    if (matched == devices.size())
      return ordinals;
  }
  return {};
}

DeviceDescription HipDevices::describe(int32_t device) const {
  DeviceDescription described;
  Device &known = described.device;
  known.kind = "HIP";
  known.index = device;
  if (device < 0)
    return described; // a GPU that HIP does not show to this process
  HipDeviceFacts facts = driver_.device(device);
  described.name = facts.name;
  described.uuid = facts.uuid;
  known.arch = facts.arch;
  known.num_sms = facts.compute_units;
  known.clock_rate_khz = facts.clock_rate_khz;
  known.memory_clock_rate_khz = facts.memory_clock_rate_khz;
  known.bus_width_bits = facts.bus_width_bits;
  return described;
}

std::vector<GpuIdentity> HipDevices::identities() const {
  int count = 0;
  std::vector<GpuIdentity> found;
  if (driver_.functions().get_device_count(&count) != hip::kSuccess)
    return found;
  for (int device = 0; device < count; ++device) {
    HipDeviceFacts facts = driver_.device(device);
    found.push_back({facts.uuid, facts.pci});
  }
  return found;
}

} // namespace proton
