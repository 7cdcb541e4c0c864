#include "driver/hip/hsa_runtime.h"

#include <cstdio>
#include <cstring>

#include "support/error.h"

namespace proton {
namespace {

constexpr const char *kHsaAdvice =
    "install ROCm 6.0 or later, or name its libhsa-runtime64 by PROTON_BENCH_HSA_LIB";
constexpr const char *kHsaDeviceAdvice =
    "check rocminfo, and that this user may open /dev/kfd and /dev/dri (groups render and video)";

struct Search {
  hsa::function::AgentGetInfo get_info;
  std::vector<HsaGpu> found;
  bool is_out_of_memory = false;
};

template <size_t bytes> std::string text_info(const Search &search, hsa::Agent agent, int info) {
  char text[bytes + 1] = {};
  return search.get_info(agent, info, text) == hsa::kSuccess ? text : "";
}

uint32_t number_info(const Search &search, hsa::Agent agent, int info) {
  uint32_t value = 0;
  return search.get_info(agent, info, &value) == hsa::kSuccess ? value : 0;
}

void add_if_gpu(Search &search, hsa::Agent agent) {
  int device = -1;
  if (search.get_info(agent, hsa::kInfoDevice, &device) != hsa::kSuccess ||
      device != hsa::kDeviceGpu)
    return;
  HsaGpu gpu;
  gpu.handle = agent.handle;
  gpu.driver_node = number_info(search, agent, hsa::kInfoDriverNode);
  gpu.pci = pci_text(number_info(search, agent, hsa::kInfoDomain),
                     number_info(search, agent, hsa::kInfoBdf));
  gpu.uuid = text_info<64>(search, agent, hsa::kInfoUuid);
  gpu.arch = text_info<64>(search, agent, hsa::kInfoName);
  gpu.product = text_info<64>(search, agent, hsa::kInfoProduct);
  search.found.push_back(std::move(gpu));
}

hsa::Status on_agent(hsa::Agent agent, void *user) noexcept {
  auto &search = *static_cast<Search *>(user);
  try {
    add_if_gpu(search, agent);
  } catch (const std::bad_alloc &) { // no exception may cross the library
    search.is_out_of_memory = true;
    return hsa::kInfoBreak;
  }
  return hsa::kSuccess;
}

} // namespace

std::string pci_text(uint32_t domain, uint32_t location) {
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", domain & 0xffff, location >> 8 & 0xff,
                location >> 3 & 0x1f, location & 7);
  return text;
}

HsaRuntime HsaRuntime::open(const std::vector<LibraryCandidate> &candidates) {
  HsaRuntime runtime;
  runtime.library_ = SharedLibrary::open("libhsa-runtime64", candidates, kHsaAdvice);
  runtime.functions_ = Functions(runtime.library_);
  runtime.functions_.check(runtime.library_, kHsaAdvice);
  return runtime;
}

std::vector<HsaGpu> HsaRuntime::gpus() const {
  check(functions_.init(), "hsa_init"); // counted: HIP's own start is not touched
  Search search{functions_.agent_get_info, {}, false};
  hsa::Status status = functions_.iterate_agents(on_agent, &search);
  functions_.shut_down();
  if (search.is_out_of_memory)
    throw std::bad_alloc();
  check(status, "hsa_iterate_agents");
  return std::move(search.found);
}

std::string HsaRuntime::describe(hsa::Status status) const {
  const char *text = nullptr;
  bool is_known =
      functions_.status_string && functions_.status_string(status, &text) == hsa::kSuccess && text;
  char number[16];
  std::snprintf(number, sizeof number, "0x%x", static_cast<unsigned>(status));
  return (is_known ? std::string(text) : "error") + " (" + number + ")";
}

void HsaRuntime::check(hsa::Status status, const char *function) const {
  if (status != hsa::kSuccess)
    throw Error(ErrorCode::kUnavailable, std::string(function) + " of " + path() + " failed: " +
                                             describe(status) + "; " + kHsaDeviceAdvice);
}

} // namespace proton
