// Hardware counters of one device, sampled in bursts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  cupti::Result error = cupti::kSuccess;
};

/// For one thread.
class PmDevice {
public:
  /// Schedules the first set that fits, which takes some 0.1 s. Throws Error(kUnavailable) that
  /// says why none does, and what to do.
  PmDevice(const CuptiLibrary &library, const CuptiPmSampling &cupti, int32_t device,
           const CounterOptions &options);
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

  /// Reads what came between the last start and stop; a millisecond of processor time for some 25
  /// samples.
  PmSamples decode();

private:
  void schedule(const std::vector<std::vector<std::string>> &sets);
  void configure(const CounterOptions &options);
  void prepare_image(const CounterOptions &options);
  cupti::Result clear_image() noexcept;
  /// Decodes once into the image; whether more is left.
  bool decode_image(PmSamples &samples) noexcept;
  void read_image(PmSamples &samples, bool is_timed);

  const CuptiLibrary &library_;
  const CuptiPmSampling &cupti_;
  int32_t device_;
  std::unique_ptr<CuptiProfilerHost> host_;
  void *sampling_ = nullptr;
  std::vector<uint8_t> image_;
};

} // namespace proton
