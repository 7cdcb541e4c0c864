// Samples program counters in one context through CUPTI.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collector/cupti/cupti_options.h"
#include "collector/cupti/pc_sampling/pc_counts.h"
#include "driver/cupti/cupti_library.h"
#include "driver/cupti/cupti_pc_sampling.h"

namespace proton {

/// What one harvest of a context yields.
struct PcHarvest {
  uint64_t total = 0;
  uint64_t dropped = 0;
  uint64_t of_driver_kernels = 0;
  bool is_overrun = false; ///< a buffer was full: samples were lost, and no more come
  cupti::Result error = cupti::kSuccess;

  void add(const PcHarvest &other);
};

/// The buffer that CUPTI fills: PCs with room for all stall reasons.
class PcBuffer {
public:
  PcBuffer(size_t most_pcs, size_t reasons);
  PcBuffer(const PcBuffer &) = delete;
  PcBuffer &operator=(const PcBuffer &) = delete;
  cupti::PcSamples &samples() { return samples_; }
  size_t bytes() const;

private:
  std::vector<cupti::PcStallReason> stalls_;
  std::vector<cupti::PcData> pcs_;
  cupti::PcSamples samples_{};
};

/// Not synchronised.
class PcContext {
public:
  PcContext(const CuptiLibrary &library, const CuptiPcSampling &cupti, void *context)
      : library_(library), cupti_(cupti), context_(context) {}
  PcContext(const PcContext &) = delete;
  PcContext &operator=(const PcContext &) = delete;

  // No other thread launches during the next five; see LaunchHold.
  /// Prepares sampling between `start` and `stop`, and starts if `starts`. Throws
  /// Error(kUnavailable) and then leaves nothing on. Kernel activity is enabled before.
  void enable(const PcSamplingOptions &options, uint32_t period_log2, bool starts,
              StallNames &names);
  cupti::Result start() noexcept;
  /// Afterwards `harvest` finds all samples.
  cupti::Result stop() noexcept;
  /// Ends sampling and adds the remaining samples.
  PcHarvest disable(PcCounts &counts);
  /// After `disable`: samples half as often, or even less if no samples came since the last time.
  /// Throws as `enable`.
  void enable_longer(const PcSamplingOptions &options, bool starts, StallNames &names);

  /// Adds all samples that CUPTI has.
  PcHarvest harvest(PcCounts &counts);

  bool is_started() const { return is_started_; }
  uint32_t period_log2() const { return period_log2_; }
  size_t bytes() const;

private:
  void find_reasons(StallNames &names);
  void configure(const PcSamplingOptions &options);
  cupti::PcContextParameters parameters() const;
  void add(const cupti::PcSamples &samples, PcCounts &counts, PcHarvest &harvest);

  const CuptiLibrary &library_;
  const CuptiPcSampling &cupti_;
  void *context_;
  uint32_t period_log2_ = 0;
  bool is_started_ = false;
  uint32_t step_ = 0;             ///< doublings of last time
  bool has_come_ = true;          ///< samples, since then
  std::vector<uint32_t> indices_; ///< of the reasons that are asked for
  std::vector<int32_t> reasons_;  ///< CUPTI's index -> number of StallNames, or -1
  std::unique_ptr<PcBuffer> buffer_;
  std::unique_ptr<PcBuffer> rest_; ///< which CUPTI fills when it is switched off
};

// How often program counters are sampled by default.

/// Exponent of the shortest period, in cycles, at which all multiprocessors together make at most
/// 16 million samples a second: 2^14 on an H200. That takes a few percent of one processor, and a
/// kernel of 100 us is still sampled more than a thousand times. 2^14 if the facts are unknown (0).
uint32_t automatic_period_log2(int64_t multiprocessors, int64_t clock_rate_khz) noexcept;

} // namespace proton
