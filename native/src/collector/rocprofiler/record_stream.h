// Reads the buffers of rocprofiler-sdk.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/hip/call_form.h"
#include "collector/hip/hip_devices.h"
#include "collector/hip/hip_records.h"
#include "driver/rocprofiler/rocprofiler_abi.h"
#include "driver/rocprofiler/rocprofiler_library.h"

namespace proton {

// GPUs as rocprofiler-sdk knows them, and the ordinals that HIP gives them.

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

// Kernels by the numbers that rocprofiler-sdk gives them when their code is loaded.

struct KernelSymbol {
  std::string name; ///< without ".kd"
  uint32_t registers = 0;
};

/// Numbers are not used again, and their symbols stay: records come after code is unloaded.
class KernelSymbols {
public:
  /// Code was loaded. [any thread] locks
  void add(const rocprofiler::KernelSymbolData &symbol);
  /// Null where the library did not tell of it. [any thread] locks
  const KernelSymbol *find(uint64_t kernel) const;

private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<const KernelSymbol>> symbols_;
};

class RocprofilerRecords {
public:
  RocprofilerRecords(HipRecords &records, const KernelSymbols &symbols)
      : records_(records), symbols_(symbols) {}

  /// Before records come.
  void set_devices(const HipDevices *devices) { devices_ = devices; }
  Agents &agents() { return agents_; }
  /// `dropped` counts from the beginning of the process. [any thread] locks
  void read(std::span<rocprofiler::RecordHeader *> headers, uint64_t dropped) noexcept;

private:
  void read_dispatch(const rocprofiler::DispatchRecord &record, RecordBatch &batch);
  void read_copy(const rocprofiler::CopyRecord &record, RecordBatch &batch);

  HipRecords &records_;
  const KernelSymbols &symbols_;
  const HipDevices *devices_ = nullptr;
  // Under the lock of `records_`:
  Agents agents_;
  uint64_t dropped_before_ = 0; ///< as the library counts
};

// HIP calls as rocprofiler-sdk's callbacks carry them.

/// Calls to listen to: those that launch kernels, those that make and change graphs, and those
/// that copy or set memory if asked for.
std::vector<int> traced_operations(bool copies);
/// `payload` is that of a callback of kCallbackHipRuntimeApi.
HipApiCall read_hip_call(int operation, const void *payload) noexcept;
/// Whether a call that ended says that it failed.
bool has_failed(const void *payload) noexcept;

} // namespace proton
