#include "collector/rocprofiler/agents.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "driver/hip/hsa_runtime.h"
#include "driver/rocprofiler/rocprofiler_agent.h"

namespace proton {
namespace {

using rocprofiler::read_agent;
namespace at = rocprofiler::agent_offset;

/// As ROCR_VISIBLE_DEVICES takes it: of the number's bytes the first is the lowest.
std::string uuid_text(const void *agent) {
  auto number = read_agent<uint64_t>(agent, at::kUuid);
  if (number == 0)
    return {};
  char text[24];
  std::snprintf(text, sizeof text, "GPU-%016" PRIx64, number);
  return text;
}

} // namespace

rocprofiler::Status Agents::take(int, const void **agents, size_t count, void *self) noexcept {
  try {
    auto &gpus = static_cast<Agents *>(self)->gpus_;
    gpus.clear();
    for (size_t i = 0; i < count; ++i) {
      const void *agent = agents[i];
      if (read_agent<uint64_t>(agent, at::kSize) < rocprofiler::kAgentBytes)
        return rocprofiler::kErrorIncompatibleAbi;
      if (read_agent<int>(agent, at::kType) != rocprofiler::kAgentGpu)
        continue;
      Gpu gpu{read_agent<uint64_t>(agent, at::kId),
              read_agent<int32_t>(agent, at::kLogicalNodeOfType),
              {uuid_text(agent), pci_text(read_agent<uint32_t>(agent, at::kPciDomain),
                                          read_agent<uint32_t>(agent, at::kLocation))}};
      gpus.push_back(std::move(gpu));
    }
    std::stable_sort(gpus.begin(), gpus.end(),
                     [](const Gpu &left, const Gpu &right) { return left.order < right.order; });
    return rocprofiler::kSuccess;
  } catch (...) { // no memory
    return rocprofiler::kErrorOutOfResources;
  }
}

void Agents::list(const RocprofilerLibrary &library) {
  library.check(library.functions().query_available_agents(rocprofiler::kAgentVersion0, take,
                                                           rocprofiler::kAgentBytes, this),
                "rocprofiler_query_available_agents");
}

void Agents::map(const HipDevices &devices) {
  std::vector<GpuIdentity> identities;
  for (const Gpu &gpu : gpus_)
    identities.push_back(gpu.identity);
  std::vector<int> ordinals = ordinals_by_identity(identities, devices.identities());
  if (ordinals.empty())
    ordinals = ordinals_by_variables(identities, VisibleVariables::of_environment());
  for (size_t i = 0; i < gpus_.size(); ++i)
    gpus_[i].ordinal = ordinals[i];
  is_mapped_ = true;
}

int Agents::ordinal(uint64_t agent, const HipDevices &devices) {
  if (!is_mapped_)
    map(devices);
  for (const Gpu &gpu : gpus_)
    if (gpu.handle == agent)
      return gpu.ordinal;
  return -1;
}

} // namespace proton
