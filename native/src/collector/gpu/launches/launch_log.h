// Notes launches when their driver calls begin, and takes back those that failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "collector/gpu/launches/launch_thread.h"
#include "record/record_sink.h"

namespace proton {

// The contexts that had a launch: a flush has to wait for them.

/// Receives new contexts. [launching thread, inside of a watched call]
class NewContextListener {
public:
  virtual ~NewContextListener() = default;
  virtual void launching_in(void *context) noexcept = 0;
};

class ContextList {
public:
  /// Notes that the thread launches in the context. Locks at its first launch there only.
  /// [launching thread, noexcept]
  void note(LaunchThread &thread, void *context) noexcept {
    uint32_t generation = generation_.load(std::memory_order_relaxed);
    if (thread.context != context || thread.context_generation != generation)
      add(thread, context);
  }
  /// Set the listener that `note` calls when a thread first launches in a context, before the
  /// launch goes on; null removes it.
  void set_listener(NewContextListener *listener) noexcept { listener_.store(listener); }
  void forget(void *context) noexcept;
  void forget_all() noexcept;
  std::vector<void *> list() const;

private:
  void add(LaunchThread &thread, void *context) noexcept;
  mutable std::mutex mutex_;
  std::vector<void *> contexts_;
  std::atomic<uint32_t> generation_{1}; ///< of what threads remember
  std::atomic<NewContextListener *> listener_{nullptr};
};

// Widens correlation ids of vendors' libraries to 64 bits; those of CUPTI have 32 bits and wrap.

/// The launching and the completing side widen alike: an id stands for the number nearest to the
/// newest one that ends in the same 32 bits. That is exact as long as a record comes within two
/// thousand million calls of its launch.
class CorrelationIds {
public:
  /// Ids of vendors' libraries begin here, far from those of next_correlation_id.
  static constexpr uint64_t kFirst = uint64_t{1} << 62;
  static constexpr uint64_t kLast = (uint64_t{1} << 63) - 1;

  /// [any thread, no lock]
  uint64_t widen(uint32_t id) const noexcept {
    uint64_t newest = newest_.load(std::memory_order_relaxed);
    return newest + static_cast<uint64_t>(past(newest, id));
  }
  /// Same for the id of a call that begins now. [launching thread, no lock]
  uint64_t widen_newest(uint32_t id) noexcept {
    uint64_t newest = newest_.load(std::memory_order_relaxed);
    int64_t distance = past(newest, id);
    uint64_t wide = newest + static_cast<uint64_t>(distance);
    // Rarely, so that threads do not pass one cache line around.
    if (distance > kStep)
      while (newest < wide &&
             !newest_.compare_exchange_weak(newest, wide, std::memory_order_relaxed)) {
      }
    return wide;
  }

  /// An id above all that `widen_newest` has returned.
  uint64_t above_all() const noexcept {
    return newest_.load(std::memory_order_relaxed) + static_cast<uint64_t>(kStep) + 1;
  }

private:
  static constexpr int64_t kStep = 1 << 20;
  static int64_t past(uint64_t newest, uint32_t id) noexcept {
    return static_cast<int32_t>(id - static_cast<uint32_t>(newest));
  }
  // Above the beginning, so that an id that looks older stays above it too.
  std::atomic<uint64_t> newest_{kFirst + (uint64_t{1} << 32)};
};

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
