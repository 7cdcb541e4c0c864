#include "calltree/device_use.h"

#include <algorithm>

namespace proton {
namespace {

constexpr int64_t kLongestNs = int64_t{1} << 42; // over an hour: the clocks disagree

void add_saturating(int64_t &sum, int64_t value) {
  if (__builtin_add_overflow(sum, value, &sum))
    sum = INT64_MAX;
}

} // namespace

bool LaunchLatency::add(int64_t latency_ns) {
  if (latency_ns < 0 || latency_ns > kLongestNs) {
    ++clamped;
    return false;
  }
  min_ns = count == 0 ? latency_ns : std::min(min_ns, latency_ns);
  max_ns = std::max(max_ns, latency_ns);
  ++count;
  add_saturating(sum_ns, latency_ns);
  uint32_t place = bucket(latency_ns);
  if (place >= buckets.size())
    buckets.resize(place + 1);
  ++buckets[place];
  return true;
}

void LaunchLatency::merge(const LaunchLatency &other) {
  clamped += other.clamped;
  if (other.count == 0)
    return;
  min_ns = count == 0 ? other.min_ns : std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
  count += other.count;
  add_saturating(sum_ns, other.sum_ns);
  buckets.resize(std::max(buckets.size(), other.buckets.size()));
  for (size_t i = 0; i < other.buckets.size(); ++i)
    buckets[i] += other.buckets[i];
}

} // namespace proton
