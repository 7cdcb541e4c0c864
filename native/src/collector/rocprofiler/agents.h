// GPUs as rocprofiler-sdk knows them, and the ordinals that HIP gives them.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/hip/hip_devices.h"
#include "driver/rocprofiler/rocprofiler_library.h"

namespace proton {

class Agents {
public:
  /// Asks for the GPUs of the machine, before records come. Throws Error(kUnavailable).
  void list(const RocprofilerLibrary &library);
  /// HIP ordinal of a GPU; -1: unknown, or hidden from HIP. HIP is asked at the first call, when
  /// work of it has ended. [completing thread, one at a time]
  int ordinal(uint64_t agent, const HipDevices &devices);
  size_t gpu_count() const { return gpus_.size(); }

private:
  struct Gpu {
    uint64_t handle;
    int order; ///< among the GPUs of the machine
    GpuIdentity identity;
    int ordinal = -1;
  };
  static rocprofiler::Status take(int version, const void **agents, size_t count,
                                  void *self) noexcept;
  void map(const HipDevices &devices);

  std::vector<Gpu> gpus_; ///< by order
  bool is_mapped_ = false;
};

} // namespace proton
