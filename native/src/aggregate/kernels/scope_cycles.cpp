#include "aggregate/kernels/scope_cycles.h"

#include <algorithm>
#include <vector>

#include "record/device.h"

namespace proton {
namespace {

// Nested scopes each carry all of their own time, so sums over a subtree would count it twice.
constexpr const char *kCycles = "cycles";
constexpr const char *kNormalized = "normalized_cycles";
constexpr const char *kInstances = "instances";
// As coarse as the bins, so that a sketch holds all that 43 bits of clock can be.
constexpr double kCycleGamma = 1.03;
// Of the value of a bin: from 16 cycles on its bounds are as 16 to 17, and the value between them
// that is nearest to both is 1/33 away from either.
constexpr double kBinError = 1.0 / 33;

class Scopes {
public:
  Scopes(CallPathTree &tree, NodeIndex kernel, const CycleRecord &record)
      : tree_(tree), record_(record), nodes_(record.scopes.size(), kNoNode), kernel_(kernel),
        device_(DeviceTable::instance().find_or_add(record.device_kind, record.device_index)) {}

  void add(uint32_t scope, const ScopeTotals &totals);

private:
  NodeIndex node(uint32_t scope);
  double normalized(uint64_t cycles) const;

  CallPathTree &tree_;
  const CycleRecord &record_;
  std::vector<NodeIndex> nodes_;
  NodeIndex kernel_;
  int32_t device_;
};

NodeIndex Scopes::node(uint32_t scope) {
  std::vector<uint32_t> fresh; // innermost first
  NodeIndex above = kernel_;
  for (uint32_t id = scope; id < nodes_.size(); id = record_.scopes[id].parent) {
    if (nodes_[id] != kNoNode) {
      above = nodes_[id];
      break;
    }
    if (fresh.size() == nodes_.size())
      break; // the parents go round in a circle
    fresh.push_back(id);
  }
  for (auto id = fresh.rbegin(); id != fresh.rend(); ++id) {
    const char *name = record_.scopes[*id].name;
    Name shown(name ? std::string(name) : "scope_" + std::to_string(*id));
    above = tree_.child(above, shown, FrameKind::kScope, device_);
    nodes_[*id] = above;
  }
  return above;
}

// What a warp took in each launch, summed over launches: as `cycles`, it grows with them.
double Scopes::normalized(uint64_t cycles) const {
  const KernelTotals &totals = *record_.totals;
  double warps = static_cast<double>(record_.warps) * static_cast<double>(totals.programs);
  if (warps <= 0)
    return 0;
  return static_cast<double>(cycles) * static_cast<double>(totals.launches) / warps;
}

CountedSamples counted(const ScopeTotals &totals, std::vector<CountedSamples::Bin> &bins) {
  auto min = static_cast<double>(totals.min_cycles);
  auto max = static_cast<double>(totals.max_cycles);
  for (uint32_t bucket = 0; bucket < kCycleBuckets; ++bucket) {
    if (totals.buckets[bucket] == 0)
      continue;
    auto low = static_cast<double>(cycle_bucket_floor(bucket));
    auto high = static_cast<double>(cycle_bucket_floor(bucket + 1) - 1);
    double middle = low + high > 0 ? 2 * low * high / (low + high) : 0;
    middle = std::clamp(middle, std::min(min, max), max);
    bins.push_back({middle, totals.buckets[bucket]});
  }
  return {totals.count, static_cast<double>(totals.cycles), min, max, bins, kBinError, kCycleGamma};
}

void Scopes::add(uint32_t scope, const ScopeTotals &totals) {
  NodeIndex at = node(scope);
  MetricColumns &metrics = tree_.metrics();
  size_t column = metrics.builtin(kCycles, Aggregation::kExclusive);
  metrics.add_int(column, at, static_cast<int64_t>(totals.cycles));
  metrics.add(at, kNormalized, Aggregation::kExclusive, normalized(totals.cycles));
  metrics.add_own(kInstances, Aggregation::kExclusive, at, static_cast<int64_t>(totals.count));
  std::vector<CountedSamples::Bin> bins;
  CountedSamples samples = counted(totals, bins);
  metrics.add_samples(metrics.distribution(column, at), samples);
}

void add_coverage(MetricColumns &metrics, NodeIndex kernel, const KernelTotals &totals) {
  const std::pair<const char *, uint64_t> always[] = {
      {"instrumented_launches", totals.launches},
      {"recorded_programs", totals.programs},
      {"kept_records", totals.records},
  };
  const std::pair<const char *, uint64_t> rare[] = {
      {"skipped_programs", totals.skipped_programs}, {"corrupt_programs", totals.corrupt_programs},
      {"lost_records", totals.lost_records},         {"unpaired_records", totals.unpaired_records},
      {"lossy_programs", totals.lossy_programs},     {"lossy_warps", totals.lossy_warps},
  };
  for (const auto &[name, count] : always)
    metrics.add_own(name, Aggregation::kExclusive, kernel, static_cast<int64_t>(count));
  for (const auto &[name, count] : rare)
    if (count != 0)
      metrics.add_own(name, Aggregation::kExclusive, kernel, static_cast<int64_t>(count));
}

} // namespace

void add_cycles(CallPathTree &tree, NodeIndex kernel, const CycleRecord &record) {
  add_coverage(tree.metrics(), kernel, *record.totals);
  Scopes scopes(tree, kernel, record);
  for (uint32_t scope = 0; scope < record.scopes.size(); ++scope)
    if (record.scope_totals[scope].count != 0)
      scopes.add(scope, record.scope_totals[scope]);
}

} // namespace proton
