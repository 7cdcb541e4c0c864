#include "aggregate/memory/memory_use.h"

#include <algorithm>

namespace proton {
namespace {

constexpr const char *kAllocated = "alloc_bytes";
constexpr const char *kFreed = "freed_bytes";
constexpr const char *kPeak = "peak_bytes";
constexpr const char *kKept = "kept_bytes";
constexpr const char *kGrown = "grown_bytes";
constexpr const char *kFailed = "oom_bytes";

constexpr uint32_t kFewestSteps = 4; ///< fewer in a row may be chance

} // namespace

MemoryUse::Device &MemoryUse::device(int32_t index) {
  const auto position = static_cast<size_t>(std::max(index, 0));
  if (position >= devices_.size())
    devices_.resize(position + 1);
  return devices_[position];
}

MemoryUse::Row &MemoryUse::row(Device &device, NodeIndex node) {
  if (node >= device.rows.size())
    device.rows.resize(std::max<size_t>(node + 1, device.rows.size() * 2));
  Row &found = device.rows[node];
  found.is_used = true;
  if (found.moment != device.moment) {
    found.at_peak = found.live;
    found.moment = device.moment;
  }
  return found;
}

MemoryUse::Row &MemoryUse::changed(Device &device, NodeIndex node, uint32_t step) {
  Row &found = row(device, node);
  last_step_ = std::max(last_step_, step);
  if (found.step != step) {
    found.grown += found.blocks > found.blocks_before ? 1 : 0;
    found.blocks_before = found.blocks;
    found.step = step;
  }
  return found;
}

void MemoryUse::note_peak(Device &device) {
  if (device.live <= device.peak)
    return;
  device.peak = device.live;
  ++device.moment;
}

void MemoryUse::begin_alive(uint32_t step) {
  if (!has_begun_)
    first_step_ = step;
  last_step_ = std::max(last_step_, step);
  for (Device &device : devices_) {
    for (NodeIndex node = 0; node < device.rows.size(); ++node) {
      if (!device.rows[node].is_used)
        continue;
      Row &cleared = row(device, node);
      cleared.live = 0;
      cleared.blocks = 0;
    }
    device.live = 0;
  }
}

void MemoryUse::add_alive(NodeIndex node, int32_t index, int64_t bytes) {
  Device &target = device(index);
  Row &found = row(target, node);
  found.live += bytes;
  ++found.blocks;
  target.live += bytes;
}

void MemoryUse::end_alive() {
  for (Device &device : devices_) {
    for (Row &each : device.rows) {
      each.blocks_before = each.blocks;
      each.step = last_step_;
      if (!has_begun_)
        each.live_at_begin = each.live;
    }
    note_peak(device);
  }
  has_begun_ = true;
}

void MemoryUse::allocated(NodeIndex node, int32_t index, int64_t bytes, uint32_t step) {
  Device &target = device(index);
  Row &found = changed(target, node, step);
  found.live += bytes;
  found.allocated += bytes;
  ++found.blocks;
  target.live += bytes;
  note_peak(target);
}

void MemoryUse::freed(NodeIndex node, int32_t index, int64_t bytes, uint32_t step) {
  Device &target = device(index);
  Row &found = changed(target, node, step);
  found.live -= bytes;
  found.freed += bytes;
  found.blocks -= found.blocks != 0 ? 1 : 0;
  target.live -= bytes;
}

void MemoryUse::out_of_memory(NodeIndex node, int32_t index, int64_t bytes) {
  Device &target = device(index);
  row(target, node);
  target.failed_at = node;
  target.failed_bytes = bytes;
  target.peak = target.live + bytes; // the program may go on with less
  ++target.moment;
}

void MemoryUse::shift(NodeIndex node, int32_t index, int64_t bytes) {
  Device &target = device(index);
  row(target, node).live += bytes;
  target.live += bytes;
  note_peak(target);
}

/// What a row holds more than at the beginning, if it grew in every step.
int64_t MemoryUse::growth(const Row &row, uint32_t fewest_steps) const {
  const uint32_t steps = last_step_ - first_step_ + 1;
  const uint32_t grown = row.grown + (row.blocks > row.blocks_before ? 1 : 0);
  const int64_t bytes = row.live - row.live_at_begin;
  return steps >= fewest_steps && grown + 1 >= steps && bytes > 0 ? bytes : 0;
}

std::vector<NodeIndex> MemoryUse::growing() const {
  std::vector<NodeIndex> found;
  for (const Device &device : devices_)
    for (NodeIndex node = 0; node < device.rows.size(); ++node)
      if (growth(device.rows[node], 2) > 0)
        found.push_back(node);
  return found;
}

void MemoryUse::publish(CallPathTree &tree) {
  struct Sums {
    int64_t allocated = 0, freed = 0, peak = 0, kept = 0, grown = 0, failed = 0;
    bool is_used = false;
  };
  std::vector<Sums> sums(tree.nodes().size());
  for (const Device &device : devices_) {
    for (NodeIndex node = 0; node < device.rows.size() && node < sums.size(); ++node) {
      const Row &from = device.rows[node];
      Sums &to = sums[node];
      to.is_used |= from.is_used;
      to.allocated += from.allocated;
      to.freed += from.freed;
      to.peak += from.moment == device.moment ? from.at_peak : from.live;
      to.kept += from.live;
      to.grown += growth(from, kFewestSteps);
    }
    if (device.failed_at < sums.size())
      sums[device.failed_at].failed += device.failed_bytes;
  }
  MetricColumns &metrics = tree.metrics();
  for (NodeIndex node = 0; node < sums.size(); ++node) {
    const Sums &of = sums[node];
    if (!of.is_used)
      continue;
    metrics.set_own(kPeak, Aggregation::kInclusive, node, of.peak);
    metrics.set_own(kAllocated, Aggregation::kInclusive, node, of.allocated);
    metrics.set_own(kFreed, Aggregation::kInclusive, node, of.freed);
    metrics.set_own(kKept, Aggregation::kInclusive, node, of.kept);
    publish_rare(metrics, kGrown, node, of.grown);
    publish_rare(metrics, kFailed, node, of.failed);
  }
}

/// What an earlier tree said may be over.
void MemoryUse::publish_rare(MetricColumns &metrics, const char *name, NodeIndex node,
                             int64_t bytes) {
  if (bytes != 0)
    published_.insert({name, node});
  if (published_.contains({name, node}))
    metrics.set_own(name, Aggregation::kInclusive, node, bytes);
}

} // namespace proton
