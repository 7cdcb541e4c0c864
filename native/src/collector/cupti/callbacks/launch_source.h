// Notes launches when their driver calls begin, and takes back those that failed.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/cupti/callbacks/callback_table.h"
#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/work/kernel_codes.h"
#include "driver/cuda/cuda_abi.h"

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

} // namespace proton
