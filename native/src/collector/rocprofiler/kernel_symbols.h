// Kernels by the numbers that rocprofiler-sdk gives them when their code is loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "driver/rocprofiler/rocprofiler_records.h"

namespace proton {

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

} // namespace proton
