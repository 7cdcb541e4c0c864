// Notes launches when their driver calls begin, and takes back those that came to nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "collector/cupti/callback_table.h"
#include "collector/cupti/context_list.h"
#include "collector/cupti/correlation_ids.h"
#include "collector/cupti/kernel_codes.h"
#include "driver/cuda_abi.h"
#include "record/record_sink.h"

namespace proton {

/// Whether a driver call that ended says that it failed.
inline bool has_failed(const cupti::CallbackData &call) noexcept {
  return call.function_return && *static_cast<const cuda::Result *>(call.function_return) != 0;
}

/// The launching side of the collector, which all sources of launches share.
class LaunchLog {
public:
  LaunchLog(RecordSink &sink, CorrelationIds &ids) : sink_(sink), ids_(ids) {}

  /// Begins and ends noting; callbacks are enabled before and disabled after.
  void arm() noexcept;
  void disarm() noexcept { is_armed_.store(false, std::memory_order_release); }

  /// A driver call began. [launching thread, no lock]
  void enter(const cupti::CallbackData &call, LaunchKind kind, uint32_t code) noexcept;
  /// It ended; a failed or captured one is taken back. [launching thread, no lock]
  void leave(const cupti::CallbackData &call) noexcept;
  /// The open call of this thread became a node of a graph: nothing is launched now. True when it
  /// launches a kernel.
  static bool captured() noexcept;
  bool is_armed() const noexcept { return is_armed_.load(std::memory_order_acquire); }
  /// Whether the launch of a record must have been noted. Calls that were under way at `arm` were
  /// not; a second later, they have ended. [completing thread]
  bool must_know(uint64_t id) const noexcept { return settled_from_ != 0 && id >= settled_from_; }
  /// Looks whether that second has passed. [completing thread, one at a time]
  void observe(int64_t now_ns) noexcept;
  ContextList &contexts() { return contexts_; }

private:
  RecordSink &sink_;
  CorrelationIds &ids_;
  ContextList contexts_;
  std::atomic<bool> is_armed_{false};
  std::atomic<int64_t> armed_ns_{0};
  int64_t settled_since_ns_ = 0; ///< the `armed_ns_` that the next was found for
  uint64_t settled_from_ = 0;    ///< ids from here on are of calls that began after `arm`
};

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
