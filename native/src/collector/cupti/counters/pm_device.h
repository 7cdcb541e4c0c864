// Hardware counters of one device, sampled in bursts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/cupti/cupti_profiler_host.h"

namespace proton {

/// The samples of one burst.
struct CounterSamples {
  std::vector<std::string> metrics; ///< m of them, by their vendor's names
  std::vector<int64_t> start_ns;    ///< n of them, ascending
  std::vector<int64_t> end_ns;      ///< n of them
  std::vector<double> values;       ///< n rows of m values
  uint64_t lost = 0;                ///< samples without times or values
  bool is_image_full = false;
  bool is_buffer_full = false;
  int64_t open_ns = 0; ///< what it took: this and the following
  int64_t decode_ns = 0;
  int64_t info_ns = 0; ///< for the times of samples
  int64_t evaluate_ns = 0;
};

struct PmSettings {
  uint32_t interval_ns = 0; ///< between two samples
  uint32_t burst_ms = 0;
  size_t hardware_bytes = 0;
};

/// For one thread. Launches of its process stand still during many of these calls.
class PmDevice {
public:
  /// Schedules the first set that fits and switches counters on, which takes a quarter of a second.
  /// `device` is the driver's ordinal. Throws Error(kUnavailable) that says why it cannot be, and
  /// what to do.
  PmDevice(const CuptiLibrary &library, const CuptiPmSampling &cupti, int32_t device,
           const std::vector<std::vector<std::string>> &sets, const PmSettings &settings);
  ~PmDevice() { disable(); }

  PmDevice(const PmDevice &) = delete;
  PmDevice &operator=(const PmDevice &) = delete;

  const std::vector<std::string> &metrics() const { return host_->metrics(); }

  /// Counts while `wait` runs. Times are those of the vendor's clock; the first sample is left out,
  /// because it began before the burst. Throws Error(kUnavailable).
  CounterSamples sample(const std::function<void()> &wait);

private:
  void schedule(const std::vector<std::vector<std::string>> &sets);
  void enable();
  void disable() noexcept;
  void configure();
  void prepare_image();
  cupti::Result clear_image() noexcept;
  /// Decodes once into the image; whether more is left. Throws Error(kUnavailable).
  bool decode_image(CounterSamples &samples);
  /// Same for what came after a full image.
  void skip_rest(CounterSamples &samples);
  size_t count_samples() const;
  /// Reads the samples of the image that have times and values.
  void read_image(CounterSamples &samples);
  /// Appends the times of samples; returns the indices of those that have some.
  std::vector<size_t> read_times(CounterSamples &samples) const;

  const CuptiLibrary &library_;
  const CuptiPmSampling &cupti_;
  int32_t device_;
  PmSettings settings_;
  std::unique_ptr<CuptiProfilerHost> host_;
  void *sampling_ = nullptr;
  std::vector<uint8_t> image_;
};

} // namespace proton
