// The double of libhsa-runtime64: agents of the machine, as ROCR_VISIBLE_DEVICES leaves them.
#include <cstdio>
#include <cstring>

#include "driver/hip/hsa_runtime.h"
#include "machine.h"
#include "tracer.h"

namespace hsa = proton::hsa;
using namespace fake;

namespace {

constexpr uint64_t kCpu = 1;
constexpr uint64_t kFirstGpu = 100;

void put(void *value, uint32_t number) { std::memcpy(value, &number, sizeof number); }
void put(void *value, const std::string &text, size_t bytes) {
  std::snprintf(static_cast<char *>(value), bytes, "%s", text.c_str());
}

int gpu_info(const Gpu &gpu, int info, void *value) {
  switch (info) {
  case hsa::kInfoName:
    put(value, kArch, 64);
    break;
  case hsa::kInfoVendor:
    put(value, "AMD", 64);
    break;
  case hsa::kInfoProduct:
    put(value, kProduct, 64);
    break;
  case hsa::kInfoUuid:
    put(value, "GPU-" + gpu.uuid_digits(), hsa::kUuidBytes);
    break;
  case hsa::kInfoDevice:
    put(value, hsa::kDeviceGpu);
    break;
  case hsa::kInfoNode:
  case hsa::kInfoDriverNode:
    put(value, gpu.node());
    break;
  case hsa::kInfoBdf:
    put(value, gpu.location());
    break;
  case hsa::kInfoDomain:
    put(value, gpu.domain());
    break;
  default:
    return 0x1001; // HSA_STATUS_ERROR_INVALID_ARGUMENT
  }
  return hsa::kSuccess;
}

} // namespace

FAKE_EXPORT int hsa_init() {
  FAULT(hsa_init);
  fake_amd_start_runtime();
  return machine().empty() ? hsa::kErrorOutOfResources : hsa::kSuccess;
}

FAKE_EXPORT int hsa_shut_down() {
  FAULT(hsa_shut_down);
  return hsa::kSuccess;
}

FAKE_EXPORT int hsa_iterate_agents(hsa::AgentCallback callback, void *user) {
  FAULT(hsa_iterate_agents);
  if (const int status = callback({kCpu}, user); status != hsa::kSuccess)
    return status;
  for (const Gpu &gpu : gpus_of_rocr())
    if (const int status = callback({kFirstGpu + gpu.index}, user); status != hsa::kSuccess)
      return status;
  return hsa::kSuccess;
}

FAKE_EXPORT int hsa_agent_get_info(hsa::Agent agent, int info, void *value) {
  FAULT(hsa_agent_get_info);
  if (agent.handle >= kFirstGpu)
    return gpu_info({static_cast<uint32_t>(agent.handle - kFirstGpu)}, info, value);
  put(value, 0); // the CPU, of node 0
  return hsa::kSuccess;
}

FAKE_EXPORT int hsa_status_string(int status, const char **text) {
  static thread_local char name[40];
  std::snprintf(name, sizeof name, "HSA_STATUS_FAKE_%d", status);
  *text = name;
  return hsa::kSuccess;
}
