// Counts launches, or outermost scopes, one by one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collector/cupti/callbacks/launch_bracket.h"
#include "collector/cupti/cupti_options.h"
#include "collector/cupti/ranges/range_context.h"
#include "collector/cupti/ranges/range_facts.h"
#include "collector/gpu/launches/context_list.h"
#include "driver/cuda/cuda_driver.h"
#include "record/record_sink.h"

namespace proton {

/// One per process, and never destroyed: callbacks may come at any time. What a range counted goes
/// to the sink as a sample of a burst: the kernels between its two times are those that it counted.
/// Whatever fails: the program goes on without counters, and the facts say why.
/// Lock order: ranges, then the facts, then the sink's.
class RangeCounter : public LaunchBracket {
public:
  /// `contexts`: where something was launched.
  RangeCounter(RecordSink &sink, ContextList &contexts) : sink_(sink), launching_(contexts) {}
  RangeCounter(const RangeCounter &) = delete;
  RangeCounter &operator=(const RangeCounter &) = delete;

  /// The library and the driver outlive it. `deliver` has all work recorded that was launched
  /// before. Throws Error(kUnavailable) if the library cannot count.
  void start(const CuptiLibrary &library, const CudaDriver &driver, RangeOptions options,
             std::function<void()> deliver);
  /// Hands over what was counted, unless a range is open. [any thread]
  void flush() noexcept;
  void stop() noexcept;
  RangeFacts facts() const;

  // From callbacks. [any thread of the target, noexcept]
  /// Waits for the device; other launches wait meanwhile.
  void launch_begins(void *context) noexcept override;
  void launch_ended(void *context, bool is_graph) noexcept override;
  void context_ending(void *context) noexcept;
  /// Called in a forked child, where nothing is counted.
  static void forget_after_fork() noexcept;

private:
  /// Runs `work` and notes what it throws.
  template <typename Work> void guarded(Work work) noexcept;

  // Ranges held.
  /// Null where the context cannot be counted.
  RangeContext *opened(void *context);
  bool push(void *context);
  bool pop(void *context);
  void finish(RangeContext &counted);
  void finish_all();
  void refuse(void *context, const char *why);
  void fail(void *context, cupti::Result result);
  void skip();

  void begin_scopes();
  void end_scopes() noexcept;
  void scope_begins();
  void scope_ended();

  inline static std::atomic<bool> is_forked_{false};
  RecordSink &sink_;
  ContextList &launching_;
  std::atomic<bool> counts_launches_{false}; ///< between start and stop

  std::mutex range_mutex_; ///< ranges: of what follows; held during a counted launch
  bool is_running_ = false;
  const CuptiLibrary *library_ = nullptr;
  const CudaDriver *driver_ = nullptr;
  RangeOptions options_;
  std::function<void()> deliver_;
  std::optional<CuptiRangeProfiler> cupti_;
  std::map<void *, std::unique_ptr<RangeContext>> contexts_;
  std::set<void *> refused_;
  uint64_t open_scopes_ = 0;
  uint64_t serial_ = 0; ///< of the newest start

  mutable std::mutex facts_mutex_;
  RangeFacts facts_;
};

/// How contexts end: the counter has to let go of them first.
class CountedResourceSource : public CallbackSource {
public:
  CountedResourceSource(RangeCounter &counter, CallbackSource &contexts)
      : counter_(counter), contexts_(contexts) {}
  int domain() const override { return cupti::kDomainResource; }
  std::vector<uint32_t> callbacks() const override { return {cupti::kContextDestroyStarting}; }
  void handle(uint32_t cbid, const void *data) noexcept override {
    counter_.context_ending(static_cast<const cupti::ResourceData *>(data)->context);
    contexts_.handle(cbid, data);
  }

private:
  RangeCounter &counter_;
  CallbackSource &contexts_;
};

} // namespace proton
