// Notes the hash of every loaded module for the kernels in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "collector/cupti/callbacks/callback_table.h"
#include "collector/gpu/work/kernel_codes.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

class ModuleSource : public CallbackSource {
public:
  explicit ModuleSource(KernelCodes &codes) : codes_(codes) {}
  /// The library that computes hashes. A callback of an earlier start may still run.
  void set_library(const CuptiLibrary *library) { library_ = library; }
  int domain() const override { return cupti::kDomainResource; }
  std::vector<uint32_t> callbacks() const override { return {cupti::kModuleLoaded}; }
  void handle(uint32_t cbid, const void *data) noexcept override;

private:
  KernelCodes &codes_;
  std::atomic<const CuptiLibrary *> library_{nullptr};
};

} // namespace proton
