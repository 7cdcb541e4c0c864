#include "aggregate/kernels/sampled_kernel.h"

#include <algorithm>

#include "aggregate/kernels/fair_split.h"

namespace proton {
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

} // namespace proton
