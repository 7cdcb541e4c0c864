#include "collector/roctracer/gpu_nodes.h"

#include "support/error.h"

namespace proton {

void GpuNodes::map(const HipDevices &devices) {
  is_mapped_ = true;
  std::vector<HsaGpu> gpus;
  try {
    gpus = HsaRuntime::open(candidates_).gpus();
  } catch (const Error &) { // without ROCr devices stay unknown
    return;
  }
  std::vector<GpuIdentity> identities;
  for (const HsaGpu &gpu : gpus)
    identities.push_back({gpu.uuid, gpu.pci});
  std::vector<int> ordinals = ordinals_by_identity(identities, devices.identities());
  if (ordinals.empty()) // ROCr has applied its own variable
    ordinals = ordinals_by_variables(identities, {"", VisibleVariables::of_environment().hip});
  for (size_t i = 0; i < gpus.size(); ++i)
    ordinals_[static_cast<int>(gpus[i].driver_node)] = ordinals[i];
}

int GpuNodes::ordinal(int node, const HipDevices &devices) {
  if (!is_mapped_)
    map(devices);
  auto found = ordinals_.find(node);
  return found == ordinals_.end() ? -1 : found->second;
}

} // namespace proton
