// Agents of rocprofiler-sdk (rocprofiler_agent_v0_t), read by offset: CPUs and GPUs, whether or not
// this process may use them. Compared with AMD's headers, where they are found, by a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace proton::rocprofiler {

namespace agent_offset {
enum : size_t {
  kSize = 0,                ///< uint64_t
  kId = 8,                  ///< uint64_t, DispatchInfo::agent
  kType = 16,               ///< int, AgentType
  kMemoryBankCount = 28,    ///< uint32_t
  kWaveSize = 64,           ///< uint32_t
  kComputeUnits = 72,       ///< uint32_t
  kGfxVersion = 100,        ///< uint32_t, 10000 * major + 100 * minor + stepping: 90402
  kLocation = 108,          ///< uint32_t, PCI bus << 8 | device << 3 | function
  kPciDomain = 112,         ///< uint32_t
  kMaxClockMhz = 140,       ///< uint32_t, of the GPU
  kLocalMemoryBytes = 176,  ///< uint64_t
  kGpuId = 192,             ///< uint64_t
  kMemoryBanks = 224,       ///< const memory_bank *
  kName = 248,              ///< const char *, e.g. "gfx942"
  kProduct = 264,           ///< const char *, e.g. "AMD Instinct MI300X"
  kNode = 280,              ///< uint32_t, node of the driver
  kLogicalNode = 284,       ///< int32_t
  kLogicalNodeOfType = 288, ///< int32_t: the n-th GPU, before any variable of the environment
  kRuntimeVisibility = 292, ///< uint32_t, RuntimeVisibility
  kUuid = 296,              ///< 16 bytes; the first 8 are the number that ROCr names
};
}
inline constexpr size_t kAgentBytes = 312; ///< the oldest that has all of the above

enum RuntimeVisibility : uint32_t { kVisibleToHsa = 1, kVisibleToHip = 2 };

namespace memory_bank_offset {
enum : size_t { kWidthBits = 8, kMaxClockMhz = 12, kBytes = 16 };
}
inline constexpr size_t kMemoryBankBytes = 24;

template <typename T> T read_agent(const void *agent, size_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char *>(agent) + offset, sizeof value);
  return value;
}

} // namespace proton::rocprofiler
