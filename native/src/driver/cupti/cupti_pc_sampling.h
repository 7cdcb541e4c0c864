// The entry points of libcupti that sample program counters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/cupti/cupti_abi.h"
#include "driver/cupti/cupti_library.h"

namespace proton::cupti {

// Our own description of the part of libcupti's ABI that samples program counters. Held against
// NVIDIA's header by a test (tests/native/driver), as cupti_abi.h is.

inline constexpr size_t kStallReasonNameBytes = 128; ///< with its NUL
inline constexpr uint32_t kSmallestPeriodLog2 = 5;
inline constexpr uint32_t kLargestPeriodLog2 = 31;

enum PcCollectionMode : int { // CUpti_PCSamplingCollectionMode
  kPcContinuous = 1,
};

/// Samples of one PC with one stall reason.
struct PcStallReason { // CUpti_PCSamplingStallReason
  uint32_t index;
  uint32_t samples;
};

struct PcData { // CUpti_PCSamplingPCData of 12.4 and later; older ones end with stall_reasons
  size_t struct_bytes;
  uint64_t cubin_crc;
  uint64_t offset; ///< of the instruction in its function
  uint32_t function_index;
  uint32_t padding;
  char *function_name; ///< never freed: other records may share it
  size_t stall_reason_count;
  PcStallReason *stall_reasons; ///< ours
  uint32_t correlation_id;      ///< 0 in continuous mode
};

struct PcSamples { // CUpti_PCSamplingData
  size_t struct_bytes;
  size_t most_pcs;      ///< that `pcs` has room for
  uint64_t total;       ///< with dropped samples, and samples of kernels without PC data
  uint64_t dropped;     ///< by the hardware
  size_t pc_count;      ///< in `pcs`
  size_t remaining_pcs; ///< for the next call
  uint64_t range;
  PcData *pcs;
  uint64_t of_driver_kernels; ///< part of `total`: these have no PC data
  uint8_t is_hardware_buffer_full;
};

enum PcAttribute : int { // CUpti_PCSamplingConfigurationAttributeType
  kPcPeriod = 1,
  kPcStallReasons = 2,
  kPcScratchBytes = 3,
  kPcHardwareBytes = 4,
  kPcCollectionMode = 5,
  kPcStartStopControl = 6,
  kPcBuffer = 8,
};

struct PcSetting { // CUpti_PCSamplingConfigurationInfo
  PcAttribute attribute;
  Result status; ///< answer
  union {
    uint64_t raw[3];
    uint32_t number;
    size_t bytes;
    int mode;
    PcSamples *buffer;
    struct {
      size_t count;
      uint32_t *indices;
    } stall_reasons;
  };
};

/// Parameters of cuptiPCSamplingEnable, Disable, Start and Stop.
struct PcContextParameters {
  size_t struct_bytes = sizeof(PcContextParameters);
  void *reserved = nullptr;
  void *context = nullptr;
};

struct PcConfigurationParameters {
  size_t struct_bytes = sizeof(PcConfigurationParameters);
  void *reserved = nullptr;
  void *context = nullptr;
  size_t setting_count = 0;
  PcSetting *settings = nullptr;
};

struct PcGetDataParameters {
  size_t struct_bytes = sizeof(PcGetDataParameters);
  void *reserved = nullptr;
  void *context = nullptr;
  PcSamples *samples = nullptr;
};

struct PcNumStallReasonsParameters {
  size_t struct_bytes = sizeof(PcNumStallReasonsParameters);
  void *reserved = nullptr;
  void *context = nullptr;
  size_t *count = nullptr;
};

struct PcStallReasonsParameters {
  size_t struct_bytes = sizeof(PcStallReasonsParameters);
  void *reserved = nullptr;
  void *context = nullptr;
  size_t count = 0;
  uint32_t *indices = nullptr;
  char **names = nullptr; ///< each with kStallReasonNameBytes
};

struct SassToSourceParameters { // CUpti_GetSassToSourceCorrelationParams
  size_t struct_bytes = sizeof(SassToSourceParameters);
  const void *cubin = nullptr;
  const char *function = nullptr;
  size_t cubin_size = 0;
  uint32_t line = 0; ///< answer
  uint64_t offset = 0;
  char *file = nullptr;   ///< answer, to be freed with free()
  char *folder = nullptr; ///< same
};

namespace function {
using PcSamplingEnable = Result (*)(PcContextParameters *parameters);
using PcSamplingDisable = Result (*)(PcContextParameters *parameters);
using PcSamplingStart = Result (*)(PcContextParameters *parameters);
using PcSamplingStop = Result (*)(PcContextParameters *parameters);
using PcSamplingSetConfigurationAttribute = Result (*)(PcConfigurationParameters *parameters);
using PcSamplingGetData = Result (*)(PcGetDataParameters *parameters);
using PcSamplingGetNumStallReasons = Result (*)(PcNumStallReasonsParameters *parameters);
using PcSamplingGetStallReasons = Result (*)(PcStallReasonsParameters *parameters);
using GetSassToSourceCorrelation = Result (*)(SassToSourceParameters *parameters);
} // namespace function

} // namespace proton::cupti

namespace proton {

/// Looked up when a session samples, by their names without "cupti". None is null.
struct CuptiPcSampling : SymbolTable {
  using SymbolTable::SymbolTable;

  /// Throws Error(kUnavailable) when the library lacks one.
  static CuptiPcSampling of(const CuptiLibrary &library);

  cupti::function::PcSamplingEnable enable = need("cuptiPCSamplingEnable");
  cupti::function::PcSamplingDisable disable = need("cuptiPCSamplingDisable");
  cupti::function::PcSamplingStart start = need("cuptiPCSamplingStart");
  cupti::function::PcSamplingStop stop = need("cuptiPCSamplingStop");
  cupti::function::PcSamplingSetConfigurationAttribute set_configuration_attribute =
      need("cuptiPCSamplingSetConfigurationAttribute");
  cupti::function::PcSamplingGetData get_data = need("cuptiPCSamplingGetData");
  cupti::function::PcSamplingGetNumStallReasons get_num_stall_reasons =
      need("cuptiPCSamplingGetNumStallReasons");
  cupti::function::PcSamplingGetStallReasons get_stall_reasons =
      need("cuptiPCSamplingGetStallReasons");
  cupti::function::GetSassToSourceCorrelation get_sass_to_source_correlation =
      need("cuptiGetSassToSourceCorrelation");
  cupti::function::GetCubinCrc get_cubin_crc = need("cuptiGetCubinCrc");
};

} // namespace proton
