// Callbacks of CUPTI, and those about launches, contexts and modules.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "collector/gpu/launches/launch_log.h"
#include "collector/gpu/work/kernel_table.h"
#include "driver/cuda/cuda_abi.h"
#include "driver/cupti/cupti_library.h"

namespace proton {

class CallbackListener {
public:
  virtual ~CallbackListener() = default;
  /// [any thread of the target, inside of a call of the driver]
  virtual void handle(int domain, uint32_t cbid, const void *data) noexcept = 0;
};

/// (domain, callback id) -> listeners. Callbacks may come while it changes.
class CallbackTable {
public:
  /// Two at most for an id. The second hears of the beginning of a driver call before the first
  /// does, and of all else after it.
  void add(int domain, uint32_t cbid, CallbackListener &listener) {
    Listeners &listeners = rows_.at(static_cast<size_t>(domain)).at(cbid);
    std::atomic<CallbackListener *> &place = listeners.first ? listeners.second : listeners.first;
    place.store(&listener, std::memory_order_release);
  }
  void clear() noexcept {
    for (Row &row : rows_)
      for (Listeners &listeners : row) {
        listeners.second.store(nullptr, std::memory_order_release);
        listeners.first.store(nullptr, std::memory_order_release);
      }
  }
  void dispatch(int domain, uint32_t cbid, const void *data) const noexcept {
    auto row = static_cast<size_t>(domain);
    if (row >= kDomains || cbid >= kCallbacks)
      return;
    CallbackListener *first = rows_[row][cbid].first.load(std::memory_order_acquire);
    CallbackListener *second = rows_[row][cbid].second.load(std::memory_order_acquire);
    bool begins = second && domain == cupti::kDomainDriver &&
                  static_cast<const cupti::CallbackData *>(data)->site == cupti::kEnter;
    if (begins)
      second->handle(domain, cbid, data);
    if (first)
      first->handle(domain, cbid, data);
    if (second && !begins)
      second->handle(domain, cbid, data);
  }

private:
  struct Listeners {
    std::atomic<CallbackListener *> first{nullptr};
    std::atomic<CallbackListener *> second{nullptr};
  };
  static constexpr size_t kDomains = 8;
  static constexpr size_t kCallbacks = 1024;
  using Row = std::array<Listeners, kCallbacks>;
  std::array<Row, kDomains> rows_{};
};

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

/// Kernel launches of the driver: notes them when their calls begin, and takes back those that
/// failed.
class KernelCalls : public CallbackListener {
public:
  KernelCalls(LaunchLog &log, KernelCodes &codes) : log_(log), codes_(codes) {}
  void handle(int domain, uint32_t cbid, const void *data) noexcept override;

private:
  LaunchLog &log_;
  KernelCodes &codes_;
};

/// Driver calls that copy or set memory (cupti::kCopyCalls), in the same way.
class CopyCalls : public CallbackListener {
public:
  explicit CopyCalls(LaunchLog &log) : log_(log) {}
  void handle(int domain, uint32_t cbid, const void *data) noexcept override;

private:
  LaunchLog &log_;
};

/// Driver calls that manage memory (cupti::kMemoryCalls): an operator is open meanwhile, so that
/// samples of the host name it.
class MemoryCalls : public CallbackListener {
public:
  void handle(int domain, uint32_t cbid, const void *data) noexcept override;
};

/// Contexts that end are forgotten, and the hash of every loaded module is noted for its kernels.
class Resources : public CallbackListener {
public:
  static constexpr uint32_t kEvents[] = {cupti::kContextDestroyStarting, cupti::kModuleLoaded};

  Resources(LaunchLog &log, KernelCodes &codes) : log_(log), codes_(codes) {}
  /// The library that computes hashes. A callback of an earlier start may still run.
  void set_library(const CuptiLibrary *library) { library_ = library; }
  void handle(int domain, uint32_t cbid, const void *data) noexcept override;

private:
  void note_code(const cupti::ModuleResourceData &module) noexcept;

  LaunchLog &log_;
  KernelCodes &codes_;
  std::atomic<const CuptiLibrary *> library_{nullptr};
};

} // namespace proton
