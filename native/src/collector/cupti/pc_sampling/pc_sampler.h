// Samples of program counters, from CUPTI to the sink.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "collector/cupti/callbacks/callbacks.h"
#include "collector/cupti/cupti_options.h"
#include "collector/cupti/pc_sampling/line_table.h"
#include "collector/cupti/pc_sampling/pc_context.h"
#include "collector/gpu/launches/launch_log.h"
#include "driver/cuda/cuda_driver.h"
#include "record/record_sink.h"
#include "support/periodic_thread.h"

namespace proton {

class LaunchHold;

/// One per process, and never destroyed: callbacks may come at any time. Lock order: ranges, the
/// hold of launches, publishing, samples, then the sink's.
class PcSampler : public NewContextListener {
public:
  /// `contexts`: where something was launched.
  PcSampler(RecordSink &sink, ContextList &contexts) : sink_(sink), launching_(contexts) {}
  PcSampler(const PcSampler &) = delete;
  PcSampler &operator=(const PcSampler &) = delete;

  /// Begins to sample every context, now and later. Kernel activity is enabled before: the other
  /// order does not work. `deliver` has all work recorded that was launched before. Throws
  /// Error(kUnavailable) and then leaves nothing on.
  void start(const CuptiLibrary &library, const CudaDriver &driver,
             const PcSamplingOptions &options, std::function<void()> deliver);
  /// Hands over what was sampled. Records of the sampled work came before. [any thread]
  void flush() noexcept;
  /// Ends, with a last flush. Returns the number of failed calls.
  uint64_t stop() noexcept;
  PcSamplingFacts facts() const;

  // From callbacks. [any thread of the target, noexcept]
  void context_created(void *context) noexcept;
  void launching_in(void *context) noexcept override;
  void context_ending(void *context) noexcept;
  void module_loaded(void *context, const cupti::ModuleResourceData &module) noexcept;
  void module_ending(void *context, const cupti::ModuleResourceData &module) noexcept;
  /// Adds a cubin that was loaded before the start. Throws Error(kUnavailable) if it is not a
  /// cubin.
  void add_cubin(const char *image, size_t bytes);
  /// Around a driver call that launches. In mode launch it waits for the device, and other launches
  /// wait meanwhile.
  void launch_begins(void *context) noexcept;
  void launch_ended(void *context, bool is_graph) noexcept;
  /// Called in a forked child, where nothing is sampled.
  static void forget_after_fork() noexcept;

private:
  /// Lock of the samples. While a thread has it, driver work of CUPTI is not an event of the
  /// target.
  class Lock {
  public:
    explicit Lock(std::mutex &mutex) : lock_(mutex) { is_here_ = true; }
    ~Lock() { is_here_ = false; }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
    static bool is_here() noexcept { return is_here_; }

  private:
    static thread_local bool is_here_;
    std::lock_guard<std::mutex> lock_;
  };
  using Contexts = std::map<void *, std::unique_ptr<PcContext>>;
  bool is_continuous() const { return options_.mode == PcSamplingMode::kContinuous; }
  /// Runs `work` and counts what it throws.
  template <typename Work> void guarded(Work work) noexcept;

  // Held: launches, and samples.
  void adopt(void *context);
  void try_adopt(void *context) noexcept;
  void adopt_all();
  bool lengthen_period(void *context, PcContext &sampled) noexcept;
  /// Counts a failure.
  bool can_switch(const LaunchHold &hold) noexcept;
  bool start_context(void *context) noexcept;
  void stop_context(void *context) noexcept;
  void disable_all() noexcept;

  // Held: samples.
  void refuse(void *context, const char *why) noexcept;
  void note(const PcHarvest &harvest) noexcept;
  void harvest(void *context);
  void harvest_all();
  uint32_t period_for(void *context) const;
  std::vector<void *> newcomers() const;

  void drain() noexcept;
  /// Enables contexts, doubles periods and ends a range, where needed. [drain thread]
  void tend();
  void drain_and_tend() noexcept;
  void abandon_all() noexcept;
  PcCounts take();
  /// Hands the counts over as records; `at`: the place of all their launches.
  void publish(PcCounts taken, const Capture *at);

  void begin_ranges();
  void end_ranges() noexcept;
  void begin_range();
  void end_range();
  /// Ends the open range, unless that has to wait. [ranges held]
  void close_range();

  inline static std::atomic<bool> is_forked_{false};
  RecordSink &sink_;
  ContextList &launching_;
  PcSamplingOptions options_;
  const CuptiLibrary *library_ = nullptr;
  const CudaDriver *driver_ = nullptr;
  std::optional<CuptiPcSampling> cupti_;
  std::function<void()> deliver_;
  PeriodicThread thread_;
  std::atomic<bool> samples_launches_{false}; ///< mode launch, between start and stop
  uint32_t tries_ = 0;                        ///< of `tend` that failed [drain thread]
  uint32_t pauses_ = 0;                       ///< rounds until the next [drain thread]

  std::mutex range_mutex_; ///< ranges: of what follows; in mode launch held during a launch
  uint64_t open_scopes_ = 0;
  uint64_t range_serial_ = 0;  ///< of the newest start
  bool is_range_over_ = false; ///< the open one: its end came while a graph was captured

  std::mutex publish_mutex_; ///< publishing: of what follows
  LineTable lines_;

  mutable std::mutex mutex_; ///< samples: of all that follows
  bool is_running_ = false;
  bool is_range_open_ = false;
  Contexts contexts_;
  /// Contexts that could not be switched off: CUPTI may write to their buffers. Addresses may
  /// recur.
  std::multimap<void *, std::unique_ptr<PcContext>> abandoned_;
  std::set<void *> refused_;
  std::set<void *> overrun_; ///< whose buffers were full
  StallNames names_;
  CubinStore cubins_;
  PcCounts counts_;
  PcCounts of_graphs_; ///< in mode launch: their launches have many kernels
  PcSamplingFacts facts_;
  uint64_t failed_ = 0;
};

} // namespace proton
