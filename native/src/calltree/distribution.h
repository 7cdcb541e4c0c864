// The samples of one metric on one node: moments, up to 64 raw values, then a log-bucket sketch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace proton {

/// Relative error of a sketch whose buckets never merged.
inline constexpr double kSketchAccuracy = 0.001;
inline constexpr double kSketchGamma = (1 + kSketchAccuracy) / (1 - kSketchAccuracy);
inline constexpr size_t kMaxRawSamples = 64;
inline constexpr size_t kMaxSketchBytes = 4000;

/// Counts of values by their logarithm. Bucket i covers (g^(i-1), g^i], where g is `gamma` squared
/// once for each of `collapses`. Buckets are sparse: a value far from the others costs one page.
/// Where they would take more than kMaxSketchBytes, all of them merge in pairs, so that the middle
/// of every bucket stays within (g-1)/(g+1) of its values.
/// After "UDDSketch: Accurate Tracking of Quantiles in Data Streams", Epicoco et al. 2020,
/// arXiv:2004.08604.
class Sketch {
public:
  struct Bucket {
    int32_t index = 0;
    uint64_t count = 0;
  };

  explicit Sketch(double bucket_ratio = kSketchGamma);
  /// Adds a value, given by its natural logarithm, `count` times. Returns the growth in bytes.
  size_t add(double ln, uint64_t count = 1);

  double gamma() const { return gamma_; }
  uint8_t collapses() const { return collapses_; }
  std::vector<Bucket> buckets() const; ///< that are not empty, by rising index
  size_t bytes() const;                ///< allocated for buckets

private:
  static constexpr int32_t kPageBits = 3;
  /// Neighbouring buckets. Sixteen bits each suffice for most; the rest is in `carries_`.
  struct Page {
    int32_t number = 0; ///< index of its first bucket / 8
    uint16_t counts[1 << kPageBits] = {};
  };
  /// How often the count of a bucket overflowed.
  struct Carry {
    int32_t index = 0;
    uint32_t times = 0;
  };

  Page &page(int32_t number);
  Page &find_page(int32_t number);
  void add_to(int32_t index, uint64_t count);
  void carry(int32_t index, uint64_t times);
  size_t settle();
  void merge_pairs();

  static constexpr size_t kMaxPages = kMaxSketchBytes / sizeof(Page) + 1;
  static_assert(kMaxPages <= 256, "places are bytes");

  double gamma_;
  double ln_gamma_;
  size_t counted_bytes_;
  std::vector<Page> pages_;    ///< by rising number
  std::vector<Carry> carries_; ///< by rising index
  uint8_t collapses_ = 0;
  uint8_t places_[256] = {}; ///< where in pages_ a page was last, by the low byte of its number
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
  double value_error = 0;      ///< how far a bin's value may be from a real one, relative to it
  double gamma = kSketchGamma; ///< of the sketch, also before there is one
};

class Distribution {
public:
  Distribution() = default;
  Distribution(const Distribution &other) { *this = other; }
  Distribution &operator=(const Distribution &other);
  Distribution(Distribution &&) noexcept = default;
  Distribution &operator=(Distribution &&) noexcept = default;
  ~Distribution() = default;

  /// Adds one sample. Values <= 0 count in `zero_count` and not in the logarithmic sums. Returns
  /// the growth in bytes, which is negative where the distribution shrank.
  std::ptrdiff_t add(double value, bool keep_samples);
  /// Same for counted samples. Their logarithmic sums are as exact as their bins.
  std::ptrdiff_t add(const CountedSamples &counted, bool keep_samples);

  uint64_t n = 0;
  uint64_t zero_count = 0;
  double sum = 0, min = 0, max = 0;
  double sum_ln = 0, sum_ln2 = 0;
  double value_error = 0;         ///< the largest of the counted samples
  std::vector<float> samples;     ///< all samples while there is no sketch
  std::unique_ptr<Sketch> sketch; ///< covers all samples; set from sample kMaxRawSamples + 1 on
  bool moments_only = false;      ///< the session's budget was spent: neither samples nor sketch

private:
  size_t bytes() const;
  void forget_samples();
  void make_sketch(double gamma); ///< of the samples
};

} // namespace proton
