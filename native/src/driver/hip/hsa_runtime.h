// libhsa-runtime64 opened at run time: which GPUs there are, by the driver's nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/shared_library.h"

namespace proton::hsa {

// Our own description of the few calls of ROCr (libhsa-runtime64) that name GPUs by their nodes.
// Compared with AMD's headers, where they are found, by a test (tests/native/driver).

using Status = int; // hsa_status_t
enum StatusCode : int {
  kSuccess = 0,
  kInfoBreak = 1,
  kErrorOutOfResources = 0x1008,
  kErrorNotInitialized = 0x100B,
};

struct Agent { // hsa_agent_t
  uint64_t handle;
};

enum AgentInfo : int {      // hsa_agent_info_t and hsa_amd_agent_info_t
  kInfoName = 0,            ///< char[64], e.g. "gfx942"
  kInfoVendor = 1,          ///< char[64]
  kInfoNode = 16,           ///< uint32_t
  kInfoDevice = 17,         ///< int, DeviceType
  kInfoDriverNode = 0xA004, ///< uint32_t: the number that roctracer's records carry
  kInfoBdf = 0xA006,        ///< uint32_t: bus << 8 | device << 3 | function
  kInfoProduct = 0xA009,    ///< char[64]
  kInfoDomain = 0xA00F,     ///< uint32_t, PCI domain
  kInfoUuid = 0xA011,       ///< char[24], "GPU-" and 16 hexadecimal digits, or "GPU-XX"
};
inline constexpr int kUuidBytes = 24;

enum DeviceType : int { kDeviceCpu = 0, kDeviceGpu = 1, kDeviceDsp = 2 };

extern "C" {
using AgentCallback = Status (*)(Agent agent, void *user);
}

namespace function {
using Init = Status (*)();
using ShutDown = Status (*)();
using IterateAgents = Status (*)(AgentCallback callback, void *user);
using AgentGetInfo = Status (*)(Agent agent, int info, void *value);
using StatusString = Status (*)(Status status, const char **text);
} // namespace function

} // namespace proton::hsa

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

  struct Functions : SymbolTable {
    using SymbolTable::SymbolTable;
    hsa::function::Init init = need("hsa_init");
    hsa::function::ShutDown shut_down = need("hsa_shut_down");
    hsa::function::IterateAgents iterate_agents = need("hsa_iterate_agents");
    hsa::function::AgentGetInfo agent_get_info = need("hsa_agent_get_info");
    hsa::function::StatusString status_string = find("hsa_status_string");
  };

  SharedLibrary library_;
  Functions functions_;
};

/// "0000:c1:00.0" of a domain and of bus << 8 | device << 3 | function.
std::string pci_text(uint32_t domain, uint32_t location);

} // namespace proton
