// Our own description of the few calls of ROCr (libhsa-runtime64) that name GPUs by their nodes.
// Compared with AMD's headers, where they are found, by a test (tests/native/driver).
#pragma once

#include <cstdint>

namespace proton::hsa {

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

enum SystemInfo : int {
  kSystemTimestamp = 2,          ///< uint64_t, ticks
  kSystemTimestampFrequency = 3, ///< uint64_t, Hz
};

extern "C" {
using AgentCallback = Status (*)(Agent agent, void *user);
}

namespace function {
using Init = Status (*)();
using ShutDown = Status (*)();
using IterateAgents = Status (*)(AgentCallback callback, void *user);
using AgentGetInfo = Status (*)(Agent agent, int info, void *value);
using SystemGetInfo = Status (*)(int info, void *value);
using StatusString = Status (*)(Status status, const char **text);
} // namespace function

} // namespace proton::hsa
