#include "calltree/distribution.h"

#include <algorithm>
#include <cmath>

namespace proton {

Sketch::Sketch(double bucket_ratio) : gamma(bucket_ratio) {
  static const double kLnGamma = std::log(kSketchGamma);
  ln_gamma = gamma == kSketchGamma ? kLnGamma : std::log(gamma);
}

void Sketch::add(double ln, uint64_t count) {
  auto index = static_cast<int32_t>(std::ceil(ln / ln_gamma));
  if (counts.empty()) {
    first_index = index;
    counts.push_back(0);
  }
  auto last = first_index + static_cast<int32_t>(counts.size()) - 1;
  if (index > last) {
    counts.resize(counts.size() + static_cast<size_t>(index - last), 0);
  } else if (index < first_index) {
    auto room = static_cast<int32_t>(kMaxBuckets - std::min(kMaxBuckets, counts.size()));
    int32_t lowest = std::max(index, first_index - room);
    counts.insert(counts.begin(), static_cast<size_t>(first_index - lowest), 0);
    first_index = lowest;
  }
  if (counts.size() > kMaxBuckets) {
    // High quantiles matter most in timing, so the low buckets give way.
    size_t excess = counts.size() - kMaxBuckets;
    uint32_t merged = 0;
    for (size_t i = 0; i <= excess; ++i)
      merged += counts[i];
    counts.erase(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(excess));
    counts[0] = merged;
    first_index += static_cast<int32_t>(excess);
    collapsed = collapsed || merged != 0;
  }
  if (index < first_index) {
    collapsed = true;
    index = first_index;
  }
  uint32_t &bucket = counts[static_cast<size_t>(index - first_index)];
  bucket += static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX - bucket));
}

Distribution &Distribution::operator=(const Distribution &other) {
  n = other.n;
  zero_count = other.zero_count;
  sum = other.sum;
  min = other.min;
  max = other.max;
  sum_ln = other.sum_ln;
  sum_ln2 = other.sum_ln2;
  samples = other.samples;
  sketch = other.sketch ? std::make_unique<Sketch>(*other.sketch) : nullptr;
  moments_only = other.moments_only;
  return *this;
}

size_t Distribution::add(double value, bool keep_samples) {
  min = n == 0 ? value : std::min(min, value);
  max = n == 0 ? value : std::max(max, value);
  ++n;
  sum += value;
  const double ln = value > 0 ? std::log(value) : 0;
  if (value > 0) {
    sum_ln += ln;
    sum_ln2 += ln * ln;
  } else {
    ++zero_count;
  }
  if (moments_only)
    return 0;
  if (!keep_samples) {
    forget_samples();
    return 0;
  }
  if (!sketch && samples.size() < kMaxRawSamples) {
    size_t before = samples.capacity();
    samples.push_back(static_cast<float>(value));
    return (samples.capacity() - before) * sizeof(float);
  }
  size_t before = sketch ? sketch->counts.capacity() : 0;
  if (!sketch)
    make_sketch(kSketchGamma);
  if (value > 0)
    sketch->add(ln);
  return (sketch->counts.capacity() - before) * sizeof(uint32_t);
}

void Distribution::forget_samples() {
  moments_only = true;
  samples = {};
  sketch.reset();
}

void Distribution::make_sketch(double gamma) {
  sketch = std::make_unique<Sketch>(gamma);
  for (float sample : samples)
    if (sample > 0)
      sketch->add(std::log(static_cast<double>(sample)));
}

size_t Distribution::add(const CountedSamples &counted, bool keep_samples) {
  if (counted.n == 0)
    return 0;
  min = n == 0 ? counted.min : std::min(min, counted.min);
  max = n == 0 ? counted.max : std::max(max, counted.max);
  n += counted.n;
  sum += counted.sum;
  if (!moments_only && !keep_samples)
    forget_samples();
  size_t before = sketch ? sketch->counts.capacity() : 0;
  if (!sketch && !moments_only)
    make_sketch(counted.gamma);
  for (const CountedSamples::Bin &bin : counted.bins) {
    if (bin.value <= 0) {
      zero_count += bin.count;
      continue;
    }
    const double ln = std::log(bin.value);
    sum_ln += ln * static_cast<double>(bin.count);
    sum_ln2 += ln * ln * static_cast<double>(bin.count);
    if (sketch)
      sketch->add(ln, bin.count);
  }
  return sketch ? (sketch->counts.capacity() - before) * sizeof(uint32_t) : 0;
}

} // namespace proton
