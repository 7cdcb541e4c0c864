#include "aggregate/kernels/kernel_parts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "record/device.h"

namespace proton {

FairSplit::FairSplit(std::span<const int64_t> weights)
    : shares_(weights.size()), owed_(weights.size()), parts_(weights.size()),
      order_(weights.size()) {
  double sum = 0;
  for (int64_t weight : weights)
    sum += static_cast<double>(std::max<int64_t>(weight, 0));
  for (size_t i = 0; i < weights.size(); ++i) {
    auto weight = static_cast<double>(std::max<int64_t>(weights[i], 0));
    shares_[i] = sum > 0 ? weight / sum : 1.0 / static_cast<double>(weights.size());
    order_[i] = static_cast<uint32_t>(i);
  }
}

std::span<const uint64_t> FairSplit::split(uint64_t count) {
  uint64_t left = count;
  for (size_t i = 0; i < shares_.size(); ++i) {
    owed_[i] += shares_[i] * static_cast<double>(count);
    auto part = static_cast<uint64_t>(std::max(0.0, std::floor(owed_[i])));
    parts_[i] = std::min(part, left);
    left -= parts_[i];
  }
  for (size_t i = 0; i < shares_.size(); ++i)
    owed_[i] -= static_cast<double>(parts_[i]);
  if (left == 0)
    return parts_;
  // Fewer than there are parts, but for the errors of huge numbers.
  std::sort(order_.begin(), order_.end(), [&](uint32_t one, uint32_t other) {
    return owed_[one] != owed_[other] ? owed_[one] > owed_[other] : one < other;
  });
  for (size_t next = 0; left != 0; next = (next + 1) % order_.size()) {
    uint32_t i = order_[next];
    bool is_huge = left > order_.size();
    uint64_t given = is_huge ? left - order_.size() : 1;
    parts_[i] += given;
    owed_[i] -= static_cast<double>(given);
    left -= given;
  }
  return parts_;
}

namespace {

constexpr const char *kSamples = "num_samples";
constexpr const char *kStalled = "num_stalled_samples";
constexpr const char *kNotIssued = "num_not_issued_samples";

void add_number(CallPathTree &tree, const char *name, NodeIndex node, uint64_t value) {
  MetricColumns &metrics = tree.metrics();
  metrics.add_int(metrics.builtin(name, Aggregation::kInclusive), node,
                  static_cast<int64_t>(value));
}

/// What upstream's readers find on every sampled node.
void add_zeros(CallPathTree &tree, NodeIndex node) {
  add_number(tree, kSamples, node, 0);
  add_number(tree, kStalled, node, 0);
  for (const char *metric : kStallMetrics)
    add_number(tree, metric, node, 0);
}

class Part {
public:
  Part(const SampledLeaf &leaf, const PcLine &line) : leaf_(leaf), line_(line) {}

  void add(const StallCount &stall, uint64_t samples, uint64_t not_issued) {
    if (!leaf_.tree || samples + not_issued == 0)
      return;
    CallPathTree &tree = *leaf_.tree;
    if (node_ == kNoNode) {
      node_ =
          line_.place ? tree.child(leaf_.node, Name(line_.place), FrameKind::kLine) : leaf_.node;
      add_zeros(tree, node_);
    }
    // Upstream counts both kinds as samples, and samples of warps that waited as stalled ones.
    add_number(tree, kSamples, node_, samples + not_issued);
    add_number(tree, kStalled, node_, samples);
    add_number(tree, stall.metric, node_, samples);
    if (not_issued == 0)
      return;
    auto count = static_cast<int64_t>(not_issued);
    tree.metrics().add_own(kNotIssued, Aggregation::kInclusive, node_, count);
    tree.metrics().add_own(stall.not_issued_metric, Aggregation::kInclusive, node_, count);
  }

private:
  const SampledLeaf &leaf_;
  const PcLine &line_;
  NodeIndex node_ = kNoNode;
};

} // namespace

void add_samples(const PcSampleRecord &record, const std::vector<SampledLeaf> &leaves) {
  std::vector<int64_t> weights;
  for (const SampledLeaf &leaf : leaves)
    weights.push_back(leaf.time_ns);
  // Samples with an issue, and those without: so the second stay a part of all samples everywhere.
  FairSplit issued(weights);
  FairSplit not_issued(weights);
  for (const PcLine &line : record.lines) {
    std::vector<Part> parts;
    for (const SampledLeaf &leaf : leaves)
      parts.emplace_back(leaf, line);
    for (const StallCount &stall : line.stalls) {
      uint64_t both = std::min(stall.samples, stall.not_issued);
      std::span<const uint64_t> busy = issued.split(stall.samples - both);
      std::span<const uint64_t> idle = not_issued.split(both);
      for (size_t i = 0; i < parts.size(); ++i)
        parts[i].add(stall, busy[i] + idle[i], idle[i]);
      // A library that counts more of a part than of the whole loses nothing by it.
      std::span<const uint64_t> rest = not_issued.split(stall.not_issued - both);
      for (size_t i = 0; i < parts.size(); ++i)
        parts[i].add(stall, 0, rest[i]);
    }
  }
}

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

void KernelTimes::start() {
  stop();
  is_on_ = true;
}

void KernelTimes::stop() {
  is_on_ = false;
  known_.clear();
  times_.clear();
}

void KernelTimes::begin_window() {
  for (auto &[name, time] : times_)
    time.window_ns = 0;
}

std::string_view KernelTimes::raw_name(const KernelRecord &record) {
  if (record.variant && record.variant->raw_name)
    return record.variant->raw_name;
  return record.name ? record.name : "";
}

KernelTimes::Time &KernelTimes::entry(const KernelRecord &record) {
  if (record.identity != 0) {
    auto known = known_.find(record.identity);
    if (known != known_.end())
      return *known->second;
  }
  std::string_view name = raw_name(record);
  auto found = times_.find(name);
  if (found == times_.end())
    found = times_.emplace(name, Time{}).first;
  if (known_.size() >= kMostKnown)
    known_.clear();
  if (record.identity != 0)
    known_.emplace(record.identity, &found->second);
  return found->second;
}

void KernelTimes::add(const KernelRecord &record) {
  if (!is_on_ || !has_duration(record))
    return;
  Time &time = entry(record);
  time.window_ns += record.end_ns - record.start_ns;
  time.ever_ns += record.end_ns - record.start_ns;
}

KernelTimes::Time KernelTimes::find(std::string_view raw_name) const {
  auto found = times_.find(raw_name);
  return found == times_.end() ? Time{} : found->second;
}

} // namespace proton
