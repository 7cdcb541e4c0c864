// libhsa-runtime64 opened at run time: which GPUs there are, by the driver's nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/hip/hsa_abi.h"
#include "driver/shared_library.h"

namespace proton {

struct HsaGpu {
  uint64_t handle = 0;
  uint32_t driver_node = 0; ///< the number that records of roctracer carry
  std::string pci;          ///< "0000:c1:00.0"
  std::string uuid;         ///< "GPU-" and 16 hexadecimal digits
  std::string arch;         ///< "gfx942"
  std::string product;
};

class HsaRuntime {
public:
  /// Throws Error(kUnavailable) where none of the candidates loads or it lacks an entry point.
  static HsaRuntime open(const std::vector<LibraryCandidate> &candidates);

  const std::string &path() const { return library_.path(); }
  const std::string &origin() const { return library_.origin(); }
  /// GPUs that ROCR_VISIBLE_DEVICES leaves, in its order. Starts the runtime if it has not started.
  /// Throws Error(kUnavailable) when that fails.
  std::vector<HsaGpu> gpus() const;
  /// "HSA_STATUS_ERROR_OUT_OF_RESOURCES: ... (0x1008)".
  std::string describe(hsa::Status status) const;

private:
  void check(hsa::Status status, const char *function) const;

  SharedLibrary library_;
  hsa::function::Init init_ = nullptr;
  hsa::function::ShutDown shut_down_ = nullptr;
  hsa::function::IterateAgents iterate_agents_ = nullptr;
  hsa::function::AgentGetInfo agent_get_info_ = nullptr;
  hsa::function::StatusString status_string_ = nullptr;
};

/// "0000:c1:00.0" of a domain and of bus << 8 | device << 3 | function.
std::string pci_text(uint32_t domain, uint32_t location);

} // namespace proton
