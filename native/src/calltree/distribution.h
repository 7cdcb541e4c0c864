// The samples of one metric on one node: moments, up to 64 raw values, then a log-bucket sketch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace proton {

/// Relative error of the sketch: bucket i covers (gamma^(i-1), gamma^i].
inline constexpr double kSketchAccuracy = 0.001;
inline constexpr double kSketchGamma = (1 + kSketchAccuracy) / (1 - kSketchAccuracy);
inline constexpr size_t kMaxRawSamples = 64;
inline constexpr size_t kMaxBuckets = 1024;

/// Log buckets over consecutive indexes; the lowest buckets collapse past kMaxBuckets.
/// After "DDSketch: a fast and fully-mergeable quantile sketch", Masson et al., VLDB 2019.
struct Sketch {
  explicit Sketch(double bucket_ratio = kSketchGamma);
  double gamma;
  double ln_gamma;
  int32_t first_index = 0;      ///< bucket index of counts[0]
  std::vector<uint32_t> counts; ///< dense
  bool collapsed = false;       ///< some low buckets were merged: low quantiles are bounds only
  /// Adds a value by its natural logarithm, so many times.
  void add(double ln, uint64_t count = 1);
};

/// Samples that were counted elsewhere: exact moments, and values near the real ones.
struct CountedSamples {
  struct Bin {
    double value = 0;
    uint64_t count = 0;
  };
  uint64_t n = 0; ///< of all bins
  double sum = 0, min = 0, max = 0;
  std::span<const Bin> bins;
  double gamma = kSketchGamma; ///< of the sketch, should there be none yet
};

class Distribution {
public:
  Distribution() = default;
  Distribution(const Distribution &other) { *this = other; }
  Distribution &operator=(const Distribution &other);
  Distribution(Distribution &&) noexcept = default;
  Distribution &operator=(Distribution &&) noexcept = default;
  ~Distribution() = default;

  /// Adds one sample. Values <= 0 count in `zero_count` and not in the logarithmic sums.
  /// Returns the bytes by which the distribution grew.
  size_t add(double value, bool keep_samples);
  /// Same for counted ones: the logarithmic sums are as near as their bins.
  size_t add(const CountedSamples &counted, bool keep_samples);

  uint64_t n = 0;
  uint64_t zero_count = 0;
  double sum = 0, min = 0, max = 0;
  double sum_ln = 0, sum_ln2 = 0;
  std::vector<float> samples;     ///< the first kMaxRawSamples
  std::unique_ptr<Sketch> sketch; ///< covers all samples; set from sample kMaxRawSamples + 1 on
  bool moments_only = false;      ///< the session's budget was spent: neither samples nor sketch

private:
  void forget_samples();
  void make_sketch(double gamma); ///< of the samples
};

} // namespace proton
