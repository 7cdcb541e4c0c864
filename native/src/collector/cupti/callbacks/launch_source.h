// Notes launches when their driver calls begin, and takes back those that failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "collector/cupti/callbacks/callback_table.h"
#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/work/kernel_table.h"
#include "driver/cuda/cuda_abi.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

/// Whether a driver call that ended says that it failed.
inline bool has_failed(const cupti::CallbackData &call) noexcept {
  return call.function_return && *static_cast<const cuda::Result *>(call.function_return) != 0;
}

/// Notes that such a call began, and that it ended. [launching thread, no lock]
inline void enter_launch(LaunchLog &log, const cupti::CallbackData &call, LaunchKind kind,
                         uint32_t code) noexcept {
  log.enter({call.correlation_id, call.context}, kind, code);
}
inline void leave_launch(LaunchLog &log, const cupti::CallbackData &call) noexcept {
  log.leave(has_failed(call));
}

/// Kernel launches of the driver.
class LaunchSource : public CallbackSource {
public:
  LaunchSource(LaunchLog &log, KernelCodes &codes) : log_(log), codes_(codes) {}
  int domain() const override { return cupti::kDomainDriver; }
  std::vector<uint32_t> callbacks() const override;
  void handle(uint32_t cbid, const void *data) noexcept override;

private:
  LaunchLog &log_;
  KernelCodes &codes_;
};

/// Driver calls that copy or set memory.
class CopySource : public CallbackSource {
public:
  explicit CopySource(LaunchLog &log) : log_(log) {}
  int domain() const override { return cupti::kDomainDriver; }
  std::vector<uint32_t> callbacks() const override;
  bool may_lack_some() const override { return true; }
  void handle(uint32_t cbid, const void *data) noexcept override;

private:
  LaunchLog &log_;
};

/// Contexts that end.
class ResourceSource : public CallbackSource {
public:
  explicit ResourceSource(LaunchLog &log) : log_(log) {}
  int domain() const override { return cupti::kDomainResource; }
  std::vector<uint32_t> callbacks() const override { return {cupti::kContextDestroyStarting}; }
  void handle(uint32_t cbid, const void *data) noexcept override;

private:
  LaunchLog &log_;
};

// Notes the hash of every loaded module for the kernels in it.

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
