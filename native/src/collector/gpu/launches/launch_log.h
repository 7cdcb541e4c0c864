// Notes launches when their driver calls begin, and takes back those that failed.
#pragma once

#include <atomic>
#include <cstdint>

#include "collector/gpu/launches/context_list.h"
#include "collector/gpu/launches/correlation_ids.h"
#include "record/record_sink.h"

namespace proton {

/// A driver call as a vendor's library reports it.
struct VendorCall {
  uint32_t correlation_id = 0; ///< the low half of it, where it has 64 bits
  void *context = nullptr;     ///< what a flush waits for; of a driver without contexts any handle
};

/// The launching side of a collector, which all sources of launches share.
class LaunchLog {
public:
  LaunchLog(RecordSink &sink, CorrelationIds &ids) : sink_(sink), ids_(ids) {}

  /// Begin and end noting; callbacks are enabled before and disabled after.
  void arm() noexcept;
  void disarm() noexcept { is_armed_.store(false, std::memory_order_release); }

  /// A driver call began. [launching thread, no lock]
  void enter(const VendorCall &call, LaunchKind kind, uint32_t code) noexcept;
  /// It ended; a failed or captured one is taken back. [launching thread, no lock]
  void leave(bool has_failed) noexcept;
  /// The open call of this thread became a node of a graph, so nothing is launched now. Returns
  /// whether it launches a kernel.
  static bool captured() noexcept;
  bool is_armed() const noexcept { return is_armed_.load(std::memory_order_acquire); }
  /// Whether the launch of a record must have been noted. Calls that were open at `arm` were not;
  /// they have ended a second later. Those since `disarm` were not either. [completing thread]
  bool must_know(uint64_t id) const noexcept {
    return settled_from_ != 0 && id >= settled_from_ && is_armed();
  }
  /// Checks whether that second has passed. [completing thread, one at a time]
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

} // namespace proton
