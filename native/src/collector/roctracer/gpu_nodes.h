// GPUs by the driver's nodes, which roctracer's records carry, and the ordinals of HIP.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "collector/hip/hip_devices.h"
#include "driver/hip/hsa_runtime.h"

namespace proton {

class GpuNodes {
public:
  void set_candidates(std::vector<LibraryCandidate> candidates) {
    candidates_ = std::move(candidates);
  }
  /// HIP ordinal of a node; -1: unknown, or hidden from HIP. ROCr and HIP are asked at the first
  /// call, when work of a GPU has ended. [completing thread, one at a time]
  int ordinal(int node, const HipDevices &devices);

private:
  void map(const HipDevices &devices);

  std::vector<LibraryCandidate> candidates_;
  std::map<int, int> ordinals_;
  bool is_mapped_ = false;
};

} // namespace proton
