// Hardware counters of one device, sampled in bursts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/cupti/counters/evaluator.h"
#include "collector/cupti/cupti_options.h"
#include "driver/cupti/cupti_pm_sampling.h"
#include "driver/cupti/cupti_profiler_host.h"

namespace proton {

/// The samples of a burst, without the first, which began before it did.
struct PmSamples {
  std::vector<uint64_t> start_ns; ///< on the vendor's clock
  std::vector<uint64_t> end_ns;
  std::vector<double> values; ///< one row of metrics for each sample
  uint64_t lost = 0;          ///< without times or values
  bool is_image_full = false;
  bool is_buffer_full = false;
  int64_t decode_ns = 0; ///< what it took, and the two below
  int64_t info_ns = 0;   ///< for the times of samples
  int64_t evaluate_ns = 0;
  std::string error; ///< why there are no samples
};

/// For one thread.
class PmDevice {
public:
  /// Schedules the first set that fits, which takes some 0.1 s. Throws Error(kUnavailable) that
  /// says why none does, and what to do.
  PmDevice(const CuptiLibrary &library, const CuptiPmSampling &cupti, Evaluator &evaluator,
           int32_t device, const CounterOptions &options);
  ~PmDevice() = default; ///< what was not disabled stays on

  PmDevice(const PmDevice &) = delete;
  PmDevice &operator=(const PmDevice &) = delete;

  int32_t device() const { return device_; }
  const std::vector<std::string> &metrics() const { return host_->metrics(); }

  // Launches are held meanwhile.

  /// Switches counters on. Throws Error(kUnavailable) as above.
  void enable(const CounterOptions &options);
  void disable() noexcept;
  cupti::Result start() noexcept;
  cupti::Result stop() noexcept;

  /// Reads what came between the last start and stop.
  PmSamples decode();

private:
  void schedule(const std::vector<std::vector<std::string>> &sets);
  void configure(const CounterOptions &options);
  void prepare_image(const CounterOptions &options);
  cupti::Result clear_image() noexcept;
  /// Decodes once into the image; whether more is left. Throws Error(kUnavailable).
  bool decode_image(PmSamples &samples);
  /// Same for what came after a full image.
  void skip_rest(PmSamples &samples);
  size_t count_samples() const;
  /// Those with times; the values of some of them may be missing.
  void read_image(PmSamples &samples);
  std::vector<uint64_t> read_times(PmSamples &samples) const;
  /// Where the other process cannot, the calling thread evaluates, and launches wait meanwhile.
  std::vector<double> values_of(const std::vector<uint64_t> &samples);

  const CuptiLibrary &library_;
  const CuptiPmSampling &cupti_;
  Evaluator &evaluator_;
  int32_t device_;
  std::string chip_;
  std::unique_ptr<CuptiProfilerHost> host_;
  void *sampling_ = nullptr;
  SharedBytes image_;
};

} // namespace proton
