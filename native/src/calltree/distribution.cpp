#include "calltree/distribution.h"

#include <algorithm>
#include <cmath>

namespace proton {
namespace {

constexpr uint64_t kCountBits = 16;
constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;

} // namespace

Sketch::Sketch(double bucket_ratio) : gamma_(bucket_ratio), counted_bytes_(sizeof(Sketch)) {
  static const double kLnGamma = std::log(kSketchGamma);
  ln_gamma_ = gamma_ == kSketchGamma ? kLnGamma : std::log(gamma_);
}

size_t Sketch::add(double ln, uint64_t count) {
  auto index = static_cast<int64_t>(std::ceil(ln / ln_gamma_));
  // Each collapse sends index i to ceil(i / 2); shifts round towards smaller numbers.
  index = (index + (int64_t{1} << collapses_) - 1) >> collapses_;
  size_t pages = pages_.size(), carries = carries_.size();
  add_to(static_cast<int32_t>(index), count);
  if (pages_.size() == pages && carries_.size() == carries)
    return 0;
  return settle();
}

size_t Sketch::settle() {
  size_t before = counted_bytes_;
  while (pages_.size() * sizeof(Page) + carries_.size() * sizeof(Carry) > kMaxSketchBytes)
    merge_pairs();
  counted_bytes_ = bytes();
  return counted_bytes_ - before;
}

void Sketch::add_to(int32_t index, uint64_t count) {
  constexpr int32_t kInPage = (1 << kPageBits) - 1;
  uint16_t &bucket = page(index >> kPageBits).counts[index & kInPage];
  uint64_t sum = bucket + count;
  bucket = static_cast<uint16_t>(sum & kCountMask);
  if (sum > kCountMask)
    carry(index, sum >> kCountBits);
}

Sketch::Page &Sketch::page(int32_t number) {
  size_t place = places_[static_cast<uint8_t>(number)];
  if (place < pages_.size() && pages_[place].number == number)
    return pages_[place];
  return find_page(number);
}

Sketch::Page &Sketch::find_page(int32_t number) {
  auto found = std::lower_bound(pages_.begin(), pages_.end(), number,
                                [](const Page &each, int32_t to) { return each.number < to; });
  auto place = found - pages_.begin();
  if (found == pages_.end() || found->number != number) {
    if (pages_.size() == pages_.capacity()) // doubled, but no further past the limit than needed
      pages_.reserve(std::max(pages_.size() + 1, std::min(2 * pages_.size() + 2, kMaxPages)));
    found = pages_.insert(pages_.begin() + place, Page{});
    found->number = number;
  }
  places_[static_cast<uint8_t>(number)] = static_cast<uint8_t>(place);
  return *found;
}

void Sketch::carry(int32_t index, uint64_t times) {
  auto found = std::lower_bound(carries_.begin(), carries_.end(), index,
                                [](const Carry &each, int32_t to) { return each.index < to; });
  if (found == carries_.end() || found->index != index)
    found = carries_.insert(found, Carry{index, 0});
  found->times += static_cast<uint32_t>(std::min<uint64_t>(times, UINT32_MAX - found->times));
}

void Sketch::merge_pairs() {
  std::vector<Bucket> finer = buckets();
  pages_.clear();
  carries_.clear();
  ++collapses_;
  for (const Bucket &bucket : finer)
    add_to((bucket.index + 1) >> 1, bucket.count);
}

std::vector<Sketch::Bucket> Sketch::buckets() const {
  std::vector<Bucket> found;
  found.reserve(pages_.size() * 4);
  auto carry = carries_.begin();
  for (const Page &page : pages_)
    for (int32_t slot = 0; slot < 1 << kPageBits; ++slot) {
      Bucket bucket{page.number * (1 << kPageBits) + slot, page.counts[slot]};
      if (carry != carries_.end() && carry->index == bucket.index)
        bucket.count += uint64_t{(carry++)->times} << kCountBits;
      if (bucket.count != 0)
        found.push_back(bucket);
    }
  return found;
}

size_t Sketch::bytes() const {
  return sizeof(Sketch) + pages_.capacity() * sizeof(Page) + carries_.capacity() * sizeof(Carry);
}

Distribution &Distribution::operator=(const Distribution &other) {
  n = other.n;
  zero_count = other.zero_count;
  sum = other.sum;
  min = other.min;
  max = other.max;
  sum_ln = other.sum_ln;
  sum_ln2 = other.sum_ln2;
  value_error = other.value_error;
  samples = other.samples;
  sketch = other.sketch ? std::make_unique<Sketch>(*other.sketch) : nullptr;
  moments_only = other.moments_only;
  return *this;
}

size_t Distribution::bytes() const {
  return samples.capacity() * sizeof(float) + (sketch ? sketch->bytes() : 0);
}

std::ptrdiff_t Distribution::add(double value, bool keep_samples) {
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
  if (sketch && keep_samples)
    return value > 0 ? static_cast<std::ptrdiff_t>(sketch->add(ln)) : 0;
  auto before = static_cast<std::ptrdiff_t>(bytes());
  if (!keep_samples) {
    forget_samples();
  } else if (samples.size() < kMaxRawSamples) {
    samples.push_back(static_cast<float>(value));
  } else {
    make_sketch(kSketchGamma);
    if (value > 0)
      sketch->add(ln);
  }
  return static_cast<std::ptrdiff_t>(bytes()) - before;
}

void Distribution::forget_samples() {
  moments_only = true;
  std::vector<float>().swap(samples); // assigning an empty one would keep the memory
  sketch.reset();
}

void Distribution::make_sketch(double gamma) {
  sketch = std::make_unique<Sketch>(gamma);
  for (float sample : samples)
    if (sample > 0)
      sketch->add(std::log(static_cast<double>(sample)));
  std::vector<float>().swap(samples);
}

std::ptrdiff_t Distribution::add(const CountedSamples &counted, bool keep_samples) {
  if (counted.n == 0)
    return 0;
  min = n == 0 ? counted.min : std::min(min, counted.min);
  max = n == 0 ? counted.max : std::max(max, counted.max);
  n += counted.n;
  sum += counted.sum;
  value_error = std::max(value_error, counted.value_error);
  auto before = static_cast<std::ptrdiff_t>(bytes());
  if (!moments_only && !keep_samples)
    forget_samples();
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
  return static_cast<std::ptrdiff_t>(bytes()) - before;
}

} // namespace proton
