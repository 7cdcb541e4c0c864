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
  RequiredSymbols required(runtime.library_);
  required.resolve("hsa_init", runtime.init_);
  required.resolve("hsa_shut_down", runtime.shut_down_);
  required.resolve("hsa_iterate_agents", runtime.iterate_agents_);
  required.resolve("hsa_agent_get_info", runtime.agent_get_info_);
  required.check(kHsaAdvice);
  runtime.library_.resolve("hsa_status_string", runtime.status_string_);
  return runtime;
}

std::vector<HsaGpu> HsaRuntime::gpus() const {
  check(init_(), "hsa_init"); // counted: HIP's own start is not touched
  Search search{agent_get_info_, {}, false};
  hsa::Status status = iterate_agents_(on_agent, &search);
  shut_down_();
  if (search.is_out_of_memory)
    throw std::bad_alloc();
  check(status, "hsa_iterate_agents");
  return std::move(search.found);
}

std::string HsaRuntime::describe(hsa::Status status) const {
  const char *text = nullptr;
  bool is_known = status_string_ && status_string_(status, &text) == hsa::kSuccess && text;
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
