// Reads the buffers of rocprofiler-sdk.
#pragma once

#include <cstdint>
#include <span>

#include "collector/hip/hip_devices.h"
#include "collector/hip/hip_records.h"
#include "collector/rocprofiler/agents.h"
#include "collector/rocprofiler/kernel_symbols.h"

namespace proton {

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

} // namespace proton
